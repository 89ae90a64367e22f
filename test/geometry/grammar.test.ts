import test from 'ava';
import fc from 'fast-check';
import { colourParser } from '../../src/geometry/colour.ts';
import { cropMarginParser } from '../../src/geometry/crop.ts';
import type { OptionParser } from '../../src/geometry/optionParser.ts';
import { positionParser, scaleParser } from '../../src/geometry/place.ts';
import { roiParser } from '../../src/geometry/roi.ts';
import { shadowOpacityParser, shadowTypeParser } from '../../src/geometry/shadow.ts';

const grammars: Readonly<Record<string, OptionParser<unknown>>> = {
  roi: roiParser,
  crop_margin: cropMarginParser,
  scale: scaleParser,
  position: positionParser,
  shadow_type: shadowTypeParser,
  shadow_opacity: shadowOpacityParser,
  bg_color: colourParser,
};

/** What every grammar must refuse: none of these characters occurs in a value. */
const foreign = [
  '-1px',
  '1e2px',
  '+5%',
  '10 px',
  '10pt',
  'NaN',
  'null',
  'constructor',
  '__proto__',
  '٣px',
  '1,5%',
];

for (const [name, { parse, expected, examples }] of Object.entries(grammars)) {
  test(`${name}: the examples match the grammar, in any case`, (t) => {
    t.true(expected.length > 0 && examples.length > 0);
    for (const example of examples) {
      t.not(parse(example), undefined, example);
      t.deepEqual(parse(example.toUpperCase()), parse(example), example);
    }
  });

  test(`${name}: other texts are refused without an exception`, (t) => {
    for (const text of foreign) t.is(parse(text), undefined, text);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        parse(text);
      }),
    );
    t.is(parse('x'.repeat(100_000)), undefined);
    t.is(parse(`${'0 '.repeat(50_000)}x`), undefined);
  });
}
