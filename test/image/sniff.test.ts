import test from 'ava';
import { sniff } from '../../src/image/sniff.ts';

const HEADS: readonly (readonly [string, Buffer])[] = [
  ['jpeg', Buffer.from('ffd8ffe000104a464946', 'hex')],
  ['png', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
  ['webp', Buffer.from('RIFF\x10\0\0\0WEBPVP8 ', 'latin1')],
  ['gif', Buffer.from('GIF89a\x01\0\x01\0', 'latin1')],
  ['tiff', Buffer.from('II*\0\x08\0\0\0', 'latin1')],
  ['tiff', Buffer.from('MM\0*\0\0\0\x08', 'latin1')],
  ['avif', Buffer.from('\0\0\0\x1cftypavif\0\0\0\0mif1miaf', 'latin1')],
  ['avif', Buffer.from('\0\0\0\x1cftypmif1\0\0\0\0mif1avif', 'latin1')],
  ['heic', Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1')],
  ['mp4', Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isomiso2', 'latin1')],
  ['bmp', Buffer.from('BM\x46\0\0\0', 'latin1')],
  ['pdf', Buffer.from('%PDF-1.7\n', 'latin1')],
  ['zip', Buffer.from('PK\x03\x04\x14\0', 'latin1')],
  ['jxl', Buffer.from('\xff\x0a\xfa', 'latin1')],
  ['jp2', Buffer.from('\0\0\0\x0cjP  \r\n\x87\n', 'latin1')],
  ['psd', Buffer.from('8BPS\0\x01', 'latin1')],
  ['ico', Buffer.from('\0\0\x01\0\x01\0', 'latin1')],
  ['svg', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
  ['svg', Buffer.from('<?xml version="1.0"?>\n<!-- drawn -->\n<!DOCTYPE svg PUBLIC "x">\n<svg/>')],
  ['html', Buffer.from('<!DOCTYPE html><html><body><svg/></body></html>')],
  ['json', Buffer.from('{"errors":[]}')],
  ['text', Buffer.from('no image at all')],
  ['unknown', Buffer.from([0, 1, 2, 3, 4, 5])],
  ['unknown', Buffer.from('RIFF\x10\0\0\0AVI LIST', 'latin1')],
  ['unknown', Buffer.from('ffd8', 'hex')],
  ['empty file', Buffer.alloc(0)],
];

for (const [name, head] of HEADS) {
  test(`${name}: ${head.toString('latin1').replace(/[^ -~]/g, '.')}`, (t) => {
    t.is(sniff(head), name);
    t.is(
      sniff(new Uint8Array(Buffer.concat([Buffer.from('12345'), head])).subarray(5)),
      name,
      'a view with an offset',
    );
  });
}

test('wrong lengths in ftyp do not lead to reads beyond the file', (t) => {
  t.is(sniff(Buffer.from('\xff\xff\xff\xffftypmif', 'latin1')), 'mp4');
  t.is(sniff(Buffer.from('\0\0\0\0ftypavif', 'latin1')), 'avif');
});
