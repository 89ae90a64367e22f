// Photos and drawings from packages of Debian, unpacked into a folder each (CARD.md), as packages.csv labels them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileInCollection } from './rcc.js';

/** Where a package keeps its images. */
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
};

export const isPackage = (set) => set in FOLDERS;

/** What sharp reads: a path, or the bytes of a file in the collection of one activity. */
function open(packages, pack, file) {
  const folder = path.join(packages, pack, FOLDERS[pack]);
  if (pack !== 'gcompris-qt-data') return path.join(folder, file);
  const [activity] = file.split('/');
  return fileInCollection(path.join(folder, `${activity}.rcc`), `gcompris/src/activities/${file}`);
}

/** What a cut-out is laid over (grounds.js). */
const GROUNDS = {
  graphic: ['sharp'],
  // Over a photo its type would be another: food is a product by itself.
  food: ['plain'],
  render: ['blurred'],
  rest: ['plain', 'blurred', 'sharp'],
};

/**
 * The images of packages.csv in the folder PACKAGES. Two of a package are of one source when they are of one type and lie
 * in one folder of it, two levels deep at most.
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

/** Photos of places without a subject: what other subjects are laid over. */
export const groundPhotos = (photos) =>
  photos.filter(({ name, type }) => type === 'other' && name.startsWith('scratch/Backgrounds/'));
