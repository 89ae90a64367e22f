import test from 'ava';
import { parseLengths } from '../../src/geometry/length.ts';
import { roiParser } from '../../src/geometry/roi.ts';
import {
  maxSubjectPoints,
  normalisedPrompt,
  promptFault,
  type SubjectPrompt,
  subjectPointsParser,
} from '../../src/geometry/subjectPrompt.ts';

const { parse, examples } = subjectPointsParser;
const image = { width: 400, height: 200 };

const shown = (text: string) =>
  parse(text)?.map(({ x, y, include }) => `${include ? '' : '-'}${x.value}${x.unit} ${y.value}${y.unit}`);

for (const [text, points] of [
  ['50% 50%', ['50% 50%']],
  ['10px 20%;30.5px 0', ['10px 20%', '30.5px 0px']],
  ['10px 20px ; - 1% 2% ;-3% 4%', ['10px 20px', '-1% 2%', '-3% 4%']],
  ['0 0', ['0px 0px']],
] as const) {
  test(`subject_points "${text}" is ${points.join('; ')}`, (t) => t.deepEqual(shown(text), [...points]));
}

for (const text of [
  '50%',
  '50% 50% 50%',
  '10 20',
  '50% 50%;',
  ';50% 50%',
  '50% -50%',
  '--5% 5%',
  '-',
  '1e3px 5px',
  'NaNpx 5px',
  '50%,50%',
  Array(maxSubjectPoints + 1)
    .fill('1% 1%')
    .join(';'),
]) {
  test(`subject_points "${text.slice(0, 30)}" is invalid`, (t) => t.is(parse(text), undefined));
}

test('as many points as are allowed, and every example, are valid', (t) => {
  t.is(parse(Array(maxSubjectPoints).fill('1% 1%').join(';'))?.length, maxSubjectPoints);
  for (const example of examples) t.truthy(parse(example), example);
});

const prompt = (points: string, box?: string): SubjectPrompt => {
  const found = box === undefined ? undefined : roiParser.parse(box);
  return { points: points === '' ? [] : (parse(points) ?? []), ...(found && { box: found }) };
};

test('a point on the border of the image is in it, one beyond is named', (t) => {
  t.is(promptFault(prompt('400px 200px; 100% 0'), image), undefined);
  for (const outside of ['400.5px 10px', '10px 201px', '100.1% 0', `${'9'.repeat(400)}px 0`]) {
    const fault = promptFault(prompt(`1px 1px; ${outside}`), image);
    t.is(fault?.id, 'invalid_subject_points', outside);
    t.regex(fault?.detail ?? '', /400 x 200 pixels, and point 2/);
  }
});

test('a box has to lie inside the image and contain something', (t) => {
  t.is(promptFault(prompt('', '0 0 100% 200px'), image), undefined);
  for (const box of ['0 0 401px 10px', '10px 10px 10px 50px', '20px 0 10px 50px']) {
    t.is(promptFault(prompt('', box), image)?.id, 'invalid_subject_box', box);
  }
});

test('prompt is in fractions of the image', (t) => {
  t.deepEqual(normalisedPrompt(prompt('100px 50%; -25% 20px', '40px 20px 50% 100%'), image), {
    points: [
      { x: 0.25, y: 0.5, include: true },
      { x: 0.25, y: 0.1, include: false },
    ],
    box: { x1: 0.1, y1: 0.1, x2: 0.5, y2: 1 },
  });
});

test('every length that is understood alone is understood in a point', (t) => {
  for (const length of ['0', '.5px', '3%', '7PX']) {
    t.truthy(parseLengths(length), length);
    t.truthy(parse(`${length} ${length}`), length);
  }
});
