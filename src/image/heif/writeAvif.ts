import { type Item, readItems } from './items.ts';

const u16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
};

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

const text = (value: string): Buffer => Buffer.from(value, 'latin1');

function box(type: string, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([u32(8 + body.length), text(type), body]);
}

/** A box with version and flags. */
const fullBox = (type: string, version: number, ...content: readonly Uint8Array[]): Buffer =>
  box(type, u32(version * 2 ** 24), ...content);

const auxiliaryAlpha = text('urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0');

function itemOf(avif: Buffer, isAlpha: boolean): Item {
  const { items, primary, references } = readItems(avif);
  const id = isAlpha
    ? references.find(({ type, to }) => type === 'auxl' && to[0] === primary)?.from
    : primary;
  const item = id === undefined ? undefined : items.get(id);
  if (item?.type !== 'av01') throw new RangeError('the encoder wrote no such image');
  return item;
}

/** The image that an AVIF shows. */
export const colourItem = (avif: Buffer): Item => itemOf(avif, false);

export const alphaItem = (avif: Buffer): Item => itemOf(avif, true);

/** Properties that describe the coded image; without those that this module writes itself. */
const coding = ({ properties }: Item): Buffer[] =>
  properties
    .filter(
      ({ type, body }) => type !== 'auxC' && !(type === 'colr' && body.toString('latin1', 0, 4) !== 'nclx'),
    )
    .map(({ type, body }) => box(type, body));

/**
 * An AVIF of one image and, if there is one, its alpha (ISO/IEC 23008-12; AV1 Image File Format 1.1). libvips codes
 * both with the same loss; written here, each is coded as it should be, and has the profile of the source.
 */
export function writeAvif(image: Item, { alpha, icc }: { alpha?: Item; icc?: Uint8Array } = {}): Buffer {
  const properties = [...coding(image), ...(icc ? [box('colr', text('prof'), icc)] : [])];
  const ofAlpha = alpha ? [...coding(alpha), fullBox('auxC', 0, auxiliaryAlpha)] : [];
  // A reader must understand how an image is coded and what an auxiliary image is.
  const essential = (property: Buffer) =>
    ['av1C', 'auxC'].includes(property.toString('latin1', 4, 8)) ? 0x80 : 0;
  const association = (id: number, own: readonly Buffer[], first: number) =>
    Buffer.concat([
      u16(id),
      Buffer.from([own.length, ...own.map((each, i) => essential(each) | (first + i))]),
    ]);
  const images = [image, ...(alpha ? [alpha] : [])];
  const data = images.map((each) => each.data());

  const head = box('ftyp', text('avif\0\0\0\0avifmif1miaf'));
  const meta = (offset: number): Buffer => {
    let from = offset;
    const locations = data.map(({ length }, i) => {
      const location = Buffer.concat([u16(i + 1), u16(0), u16(1), u32(from), u32(length)]);
      from += length;
      return location;
    });
    const infos = images.map((_, i) => fullBox('infe', 2, u16(i + 1), u16(0), text('av01\0')));
    const associations = [
      association(1, properties, 1),
      ...(alpha ? [association(2, ofAlpha, 1 + properties.length)] : []),
    ];
    return fullBox(
      'meta',
      0,
      fullBox('hdlr', 0, u32(0), text('pict'), Buffer.alloc(13)),
      fullBox('pitm', 0, u16(1)),
      fullBox('iloc', 0, Buffer.from([0x44, 0]), u16(images.length), ...locations),
      fullBox('iinf', 0, u16(images.length), ...infos),
      ...(alpha ? [fullBox('iref', 0, box('auxl', u16(2), u16(1), u16(1)))] : []),
      box(
        'iprp',
        box('ipco', ...properties, ...ofAlpha),
        fullBox('ipma', 0, u32(associations.length), ...associations),
      ),
    );
  };
  const before = head.length + meta(0).length + 8;
  return Buffer.concat([head, meta(before), box('mdat', ...data)]);
}
