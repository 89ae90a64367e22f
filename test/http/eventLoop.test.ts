import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { fail } from '../../src/errors.ts';
import { receiveBytes } from '../../src/http/body/receive.ts';
import { connectionAccepted, timeSlice, timeSliced, turnToBegin } from '../../src/http/eventLoop.ts';

/** Works for a number of milliseconds. */
function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Uses up what a turn of the event loop may take. */
const fillTurn = () => timeSlice(() => busy(10));

test.afterEach.always(async () => {
  await turn();
  await turn();
});

test.serial('little work is done at once', async (t) => {
  const done: number[] = [];
  for (let i = 0; i < 10; i++) timeSlice(() => done.push(i));
  t.is(done.length, 10);
  t.is(await timeSliced(() => 'result'), 'result');
});

test.serial('much work is done in order, a little of it per turn of the event loop', async (t) => {
  const done: number[] = [];
  const each: number[] = [];
  for (let i = 0; i < 50; i++)
    timeSlice(() => {
      busy(1);
      done.push(i);
    });
  each.push(done.length);
  for (let before = done.length; done.length < 50; before = done.length) {
    await turn();
    each.push(done.length - before);
  }
  t.deepEqual(
    done,
    Array.from({ length: 50 }, (_, i) => i),
  );
  t.true(Math.max(...each) <= 5, `${each}`);
});

test.serial('work that waits fulfils or rejects a promise', async (t) => {
  fillTurn();
  let ran = false;
  const result = timeSliced(() => {
    ran = true;
    return 7;
  });
  t.false(ran);
  const broken = timeSliced(() => {
    throw new Error('broken');
  });
  t.is(await result, 7);
  await t.throwsAsync(async () => broken, { message: 'broken' });
});

/** The turns that work waits for while each of the first `count` of them accepts a connection. */
async function turnsBeside(count: number, work: (done: () => void) => void): Promise<number> {
  let done = false;
  work(() => {
    done = true;
  });
  let turns = 0;
  while (!done) {
    if (turns < count) connectionAccepted();
    turns += 1;
    await turn();
  }
  return turns;
}

test.serial('requests wait while connections are accepted, for a bounded number of turns', async (t) => {
  const begin = (done: () => void) => void turnToBegin().then(done);
  const alone = await turnsBeside(0, begin);
  t.true(alone <= 3, `${alone}`);
  const beside = await turnsBeside(5, begin);
  t.true(beside >= 5, `${beside}`);
  const bounded = await turnsBeside(1000, begin);
  t.true(bounded > 5 && bounded < 20, `${bounded}`);
});

test.serial('of requests that arrive together, one is begun in each turn', async (t) => {
  let begun = 0;
  for (let i = 0; i < 20; i++)
    void turnToBegin().then(() => {
      begun += 1;
    });
  for (let before = begun; begun < 20; before = begun) {
    await turn();
    t.true(begun <= before + 1, `${before}, ${begun}`);
  }
});

const bodyOf = (pieces: readonly Buffer[], signal = new AbortController().signal) => {
  const req = Object.assign(Readable.from(pieces), { headers: {} }) as unknown as IncomingMessage;
  const tooLarge = () => fail('file_too_large');
  return receiveBytes(req, { maxBytes: 100, tooLarge, signal, arrived: () => {} });
};

for (const count of [1, 2, 5])
  test.serial(`a body whose ${count} pieces have to wait is complete`, async (t) => {
    const pieces = Array.from({ length: count }, (_, i) => Buffer.from(`piece ${i}, `));
    const timer = setInterval(fillTurn, 0);
    fillTurn();
    try {
      t.is((await bodyOf(pieces)).toString(), Buffer.concat(pieces).toString());
    } finally {
      clearInterval(timer);
    }
  });

test.serial('an error of a piece that waits is that of the body', async (t) => {
  fillTurn();
  await t.throwsAsync(bodyOf([Buffer.alloc(101)]), { message: /file_too_large/ });
});
