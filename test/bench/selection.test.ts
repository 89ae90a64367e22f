import test from 'ava';
import {
  agreement,
  boundsOf,
  components,
  deepestPoint,
  jittered,
  nextClick,
} from '../../bench/selection/geometry.ts';
import { numbers } from '../../bench/selection/scenes.ts';
import { ratio } from '../../bench/selection.ts';

const drawn = (...rows: readonly string[]) => ({
  data: Uint8Array.from(rows.join(''), (each) => (each === '#' ? 255 : 0)),
  width: rows[0]?.length ?? 0,
  height: rows.length,
});

test('the deepest point is the one farthest from all that is outside, and from the border', (t) => {
  const mask = drawn('.....', '.###.', '.###.', '.###.', '.....', '####.');
  t.deepEqual(deepestPoint(mask), { x: 2, y: 2, depth: 2 });
  t.deepEqual(deepestPoint(drawn('###', '###', '###')), { x: 1, y: 1, depth: 2 });
});

test('the next click is the deepest point of what is wrong, and says whether it is missing or too much', (t) => {
  const chosen = drawn('.....', '.###.', '.###.', '.###.', '.....');
  const none = drawn('.....', '.....', '.....', '.....', '#....');
  t.deepEqual(nextClick(none, chosen.data), { x: 2, y: 2, depth: 2, include: true });
  const more = drawn('#####', '#####', '#####', '#####', '#####');
  t.false(nextClick(more, chosen.data).include);
});

test('bounds are those of all pixels that are in, and jitter stays within its share and the image', (t) => {
  const mask = drawn('....', '.#..', '..#.', '....');
  const bounds = boundsOf(mask);
  t.deepEqual(bounds, { x1: 1, y1: 1, x2: 3, y2: 3 });
  t.is(boundsOf(drawn('...')), undefined);
  const random = numbers(7);
  const box = { x1: 100, y1: 0, x2: 300, y2: 100 };
  const moved = Array.from({ length: 200 }, () => jittered(box, 0.05, { width: 305, height: 100 }, random));
  t.true(
    moved.every(
      ({ x1, x2, y1, y2 }) => Math.abs(x1 - 100) <= 10 && x2 >= 290 && x2 <= 305 && y1 >= 0 && y2 <= 100,
    ),
  );
  t.true(new Set(moved.map(({ x1 }) => x1)).size > 5);
});

test('overlap counts pixels, and what is left of the other only where the chosen one is not', (t) => {
  const [chosen, other] = [drawn('##..'), drawn('.###')];
  t.deepEqual(agreement(drawn('##..'), chosen.data, other.data), { iou: 1, left: 0 });
  t.deepEqual(agreement(drawn('.##.'), chosen.data, other.data), { iou: 1 / 3, left: 0.5 });
  t.deepEqual(agreement(drawn('....'), chosen.data, other.data), { iou: 0, left: 0 });
});

test('components are connected by edges, large enough, and in order from the left', (t) => {
  const parts = components(drawn('##.#', '....', '#..#', '#..#'), 0.1);
  t.deepEqual(
    parts.map((part) => [...part].flatMap((value, at) => (value > 0 ? [at] : []))),
    [
      [8, 12],
      [0, 1],
      [11, 15],
    ],
  );
});

test('costs are compared round by round', (t) => {
  t.is(ratio([2, 6, 30], [1, 2, 10]), 3);
});
