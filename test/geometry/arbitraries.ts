import fc from 'fast-check';
import type { Box } from '../../src/engine/types.ts';
import type { Geometry } from '../../src/geometry/compose.ts';
import type { Length } from '../../src/geometry/length.ts';
import type { Dimensions } from '../../src/image/types.ts';

export const dimensions: fc.Arbitrary<Dimensions> = fc.record({
  width: fc.integer({ min: 1, max: 6000 }),
  height: fc.integer({ min: 1, max: 6000 }),
});

/** Some pixels of `room`, often touching a border. */
const span = (room: number) =>
  fc
    .tuple(
      fc.oneof(fc.constant(0), fc.integer({ min: 0, max: room - 1 })),
      fc.oneof(fc.constant(room), fc.integer({ min: 1, max: room })),
    )
    .map(([one, other]) => ({ start: Math.min(one, other - 1), end: Math.max(one + 1, other) }))
    .map(({ start, end }) => ({ start, size: end - start }));

export const boxIn = ({ width, height }: Dimensions): fc.Arbitrary<Box> =>
  fc
    .record({ x: span(width), y: span(height) })
    .map(({ x, y }) => ({ left: x.start, top: y.start, width: x.size, height: y.size }));

export const imageAndSubject: fc.Arbitrary<{ image: Dimensions; subject: Box }> = dimensions.chain((image) =>
  boxIn(image).map((subject) => ({ image, subject })),
);

const length: fc.Arbitrary<Length> = fc.oneof(
  fc.record({ value: fc.integer({ min: 0, max: 500 }), unit: fc.constant('px' as const) }),
  fc.record({ value: fc.double({ min: 0, max: 50, noNaN: true }), unit: fc.constant('%' as const) }),
);

export const margin = fc.record({ top: length, right: length, bottom: length, left: length });

const share = fc.double({ min: 0, max: 1, noNaN: true });

export const scale = fc.oneof(
  fc.constant('original' as const),
  fc.constantFrom(0.1, 0.5, 0.8, 1),
  fc.double({ min: 0.1, max: 1, noNaN: true }),
);

export const position = fc.oneof(
  fc.constant(undefined),
  fc.constant('original' as const),
  fc.constantFrom({ x: 0, y: 0 }, { x: 0.5, y: 0.5 }, { x: 1, y: 1 }),
  fc.record({ x: share, y: share }),
);

export const opacity = fc.constantFrom(0, 0.5, 0.9, 1);

export const geometry: fc.Arbitrary<Geometry> = fc.record({
  crop: fc.boolean(),
  cropMargin: margin,
  scale,
  position,
  shadowOpacity: opacity,
});

export const wholeOf = ({ width, height }: Dimensions): Box => ({ left: 0, top: 0, width, height });
