import test from 'ava';
import { difference } from '../fixtures/raster.ts';
import { drawScene, SCENES } from '../fixtures/scene.ts';

for (const name of SCENES) {
  const scene = drawScene(name, 160, 120, 2);

  test(`${name}: the composite is the foreground over a background, with exactly this alpha`, (t) => {
    const wrong: string[] = [];
    const clear = drawScene(name, 160, 120, 2);
    t.is(difference(scene.composite, clear.composite).max, 0, 'the same arguments draw the same image');
    scene.alpha.forEach((a, pixel) => {
      for (let c = pixel * 4; c < pixel * 4 + 3; c += 1) {
        const [f, seen] = [scene.foreground[c] ?? 0, scene.composite[c] ?? 0];
        if (a === 255 && f !== seen) wrong.push('an opaque pixel differs from its foreground');
        // The background that explains the composite must be a valid colour.
        if (a < 255) {
          const background = (255 * seen - a * f) / (255 - a);
          const slack = (0.5 * 255) / (255 - a);
          if (background < -slack || background > 255 + slack)
            wrong.push('no background explains the composite');
        }
      }
      if (scene.foreground[pixel * 4 + 3] !== a) wrong.push('the cut-out has another alpha');
    });
    t.deepEqual(wrong.slice(0, 5), []);
  });

  test(`${name}: has background, object and soft pixels within the image`, (t) => {
    const count = (wanted: (a: number) => boolean) => scene.alpha.filter(wanted).length;
    t.true(count((a) => a === 0) > 2000);
    t.true(count((a) => a > 127) > (name === 'glass' ? 100 : 1000));
    t.true(count((a) => a > 0 && a < 255) > 100);
    const edge = scene.alpha.filter((_, i) => i % 160 === 0 || i % 160 === 159 || i < 160 || i >= 160 * 119);
    t.is(Math.max(...edge), 0);
  });

  test(`${name}: another seed draws another image`, (t) => {
    t.true(difference(scene.composite, drawScene(name, 160, 120, 3).composite).max > 0);
  });
}
