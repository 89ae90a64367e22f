console.log('cutout');
