/** The steps running now, on one line of a terminal that is redrawn, or as lines of a log. */

const running = new Map();
const live = process.stderr.isTTY === true;
/** Interval between two drawings on a terminal, and between two lines of a log about one step. */
const EVERY_MS = live ? 200 : 30_000;

const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(0)} s`;

let timer;

function clear() {
  if (live) process.stderr.write('\r\x1b[2K');
}

function draw() {
  const parts = [...running].map(([title, { started, detail }]) => `${title} ${seconds(started)}  ${detail}`);
  if (!live) {
    for (const [title, { started }] of running) console.error(`  … ${title}  ${seconds(started)}`);
    return;
  }
  // Divides the line among the steps, so that the first does not hide the others.
  const width = Math.floor(((process.stderr.columns ?? 80) - 4) / Math.max(1, parts.length)) - 2;
  const line = parts.map((part) => part.trimEnd().slice(0, Math.max(10, width))).join(' │ ');
  process.stderr.write(`\r\x1b[2K  … ${line}`);
}

function say(line) {
  clear();
  console.error(line);
  if (live && running.size > 0) draw();
}

/**
 * Shows a step until its work has ended, together with others.
 * @param {string} title
 * @param {(progress: (detail: string) => void) => Promise<void>} work
 */
export async function shown(title, work) {
  const step = { started: Date.now(), detail: '' };
  running.set(title, step);
  if (!live) console.error(`  … ${title}`);
  timer ??= setInterval(draw, EVERY_MS);
  let mark = '✗';
  try {
    await work((detail) => {
      step.detail = detail;
    });
    mark = '✓';
  } finally {
    running.delete(title);
    if (running.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    say(`  ${mark} ${title}  (${seconds(step.started)})`);
  }
}
