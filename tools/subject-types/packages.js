// Photos and drawings of Debian packages, each unpacked into a folder (CARD.md), with the labels of packages.csv.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileInCollection } from './rcc.js';

/** The folder of a package's images. */
const FOLDERS = {
  'freedombox-doc-en': 'usr/share/freedombox/manual/en/images',
  'gcompris-qt-data': 'usr/share/gcompris-qt/rcc',
  'kalzium-data': 'usr/share/kalzium/data/toolpics',
  kphotoalbum: 'usr/share/kphotoalbum/demo',
  'lomiri-wallpapers-16.04': 'usr/share/backgrounds',
  'mate-backgrounds': 'usr/share/backgrounds/mate',
  'openclipart-png': 'usr/share/openclipart/png',
  'palapeli-data': 'usr/share/palapeli/collection',
  scratch: 'usr/share/scratch/Media',
  // Its catalogues (`sh3f`) unpacked beside themselves.
  'sweethome3d-furniture': 'usr/share/sweethome3d/furniture',
  'tuxpaint-stamps-default': 'usr/share/tuxpaint/stamps',
  'gnome-icon-theme': 'usr/share/icons/gnome/256x256',
  'lxde-icon-theme': 'usr/share/icons/nuoveXT2/128x128',
  // Screenshots of handbooks.
  dolphin: 'usr/share/doc/HTML/en/dolphin',
  'gnucash-docs': 'usr/share/doc/gnucash-docs/gnucash-guide-en/figures',
  gwenview: 'usr/share/doc/HTML/en/gwenview',
  'kdenlive-data': 'usr/share/doc/HTML/en/kdenlive',
  'kgeography-data': 'usr/share/doc/HTML/en/kgeography',
  kig: 'usr/share/doc/HTML/en/kig',
  'kmymoney-common': 'usr/share/doc/HTML/en/kmymoney',
  'konversation-data': 'usr/share/doc/HTML/en/konversation',
  krusader: 'usr/share/doc/HTML/en/krusader',
  'kstars-data': 'usr/share/doc/HTML/en/kstars',
  'ktouch-data': 'usr/share/doc/HTML/en/ktouch',
  'labplot-data': 'usr/share/doc/HTML/en/labplot2',
  'marble-data': 'usr/share/doc/HTML/en/marble',
  okular: 'usr/share/doc/HTML/en/okular',
  'parley-data': 'usr/share/doc/HTML/en/parley',
  'skrooge-common': 'usr/share/doc/HTML/en/skrooge',
};

export const isPackage = (set) => set in FOLDERS;

/** The input for sharp: a path, or the bytes of a file in a resource collection. */
function open(packages, pack, file) {
  const folder = path.join(packages, pack, FOLDERS[pack]);
  if (pack !== 'gcompris-qt-data') return path.join(folder, file);
  const [activity] = file.split('/');
  return fileInCollection(path.join(folder, `${activity}.rcc`), `gcompris/src/activities/${file}`);
}

/** Kinds of backgrounds for a cut-out (grounds.js). */
const GROUNDS = {
  graphic: ['sharp'],
  // The type would differ over a photo: food alone is a product.
  food: ['plain'],
  render: ['blurred'],
  rest: ['plain', 'blurred', 'sharp'],
};

/**
 * The images of packages.csv in the folder PACKAGES. A source is all images of one type in one folder of a package, at
 * most two levels deep.
 */
export function packagePhotos(packages) {
  const [, ...rows] = readFileSync(new URL('packages.csv', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  return rows.map((row) => {
    const [pack, file, type, note] = row.split(',');
    const source = [pack, ...path.dirname(file).split('/').slice(0, 2)].join(' ');
    const grounds = GROUNDS[note] ?? GROUNDS[type] ?? GROUNDS.rest;
    return {
      name: `${pack}/${file}`,
      open: () => open(packages, pack, file),
      ...{ type, set: pack, source, grounds },
    };
  });
}

/** Photos of places without a subject: backgrounds for other subjects. */
export const groundPhotos = (photos) =>
  photos.filter(({ name, type }) => type === 'other' && name.startsWith('scratch/Backgrounds/'));
