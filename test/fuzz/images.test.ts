import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { apiErrors } from '../../src/errors.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { type Service, startService } from '../fixtures/service.ts';
import { corpus } from './corpus.ts';
import { damage } from './damage.ts';
import { Dice } from './dice.ts';

/**
 * Damaged image files and random options through complete requests: decoding, composition and encoding are the real
 * ones, only the matte is the fake engine's. `npm run fuzz` runs it longer, with the seed it prints.
 */
const seconds = Number(process.env['CUTOUT_FUZZ_SECONDS'] ?? Number.NaN);
const seed = Number(process.env['CUTOUT_FUZZ_SEED'] ?? 20_261_122);
const count = 250;

const test = anyTest as TestFn<{ engine: Engine }>;
test.before((t) => {
  t.context.engine = createEngine(loadAddon(), engineOptions());
});
test.after.always((t) => t.context.engine.close(0));

function fieldsOf(dice: Dice): Record<string, string> {
  const choices: Record<string, readonly [string, ...string[]]> = {
    size: ['auto', 'preview', 'full', '50MP', 'medium', '1000'],
    format: ['auto', 'png', 'jpg', 'webp', 'avif', 'zip'],
    lossless: ['true', 'false'],
    channels: ['rgba', 'alpha'],
    bg_color: ['81d4fa77', 'red', '#fff', 'nothing'],
    crop: ['true', 'false'],
    crop_margin: ['0', '10%', '30px', '10% 5% 0 3px', '-1'],
    scale: ['original', '10%', '50%', '100%'],
    position: ['original', 'center', '30% 90%'],
    roi: ['0% 0% 100% 100%', '10% 10% 60% 60%', '90% 90% 100% 100%', '3px 3px 40px 20px'],
    add_shadow: ['true'],
    shadow_type: ['drop', '3D', 'none'],
    shadow_opacity: ['0', '50', '100'],
    semitransparency: ['true', 'false'],
    type: ['auto', 'person', 'car', 'product'],
  };
  return Object.fromEntries(
    Object.entries(choices)
      .filter(() => dice.oneIn(3))
      .map(([name, values]) => [name, dice.of(values)]),
  );
}

const known = new Set(apiErrors.map(({ status, code }) => `${status} ${code}`));

/** Faults of an answer, and its outcome. */
async function faultOf(answer: Response): Promise<{ fault?: string; name: string }> {
  const body = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) {
    const text = body.toString();
    const { errors } = JSON.parse(text) as { errors?: { code?: string }[] };
    const name = `${answer.status} ${errors?.[0]?.code}`;
    return { name, ...((answer.status >= 500 || !known.has(name)) && { fault: text }) };
  }
  const type = answer.headers.get('content-type') ?? '';
  if (!type.startsWith('image/')) return { name: `200 ${type}` };
  const { width, height } = await sharp(body).metadata();
  const stated = `${answer.headers.get('x-width')}×${answer.headers.get('x-height')}`;
  await sharp(body).stats();
  return {
    name: `200 ${type}`,
    ...(stated !== `${width}×${height}` && { fault: `${stated} was ${width}×${height}` }),
  };
}

async function one(
  t: ExecutionContext,
  service: Service,
  files: readonly [Buffer, ...Buffer[]],
  own: number,
) {
  const dice = new Dice(own);
  const file = damage(dice, dice.of(files), dice.of(files));
  const form = new FormData();
  const fields = fieldsOf(dice);
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('image_file', new Blob([new Uint8Array(file)]), 'image');
  if (dice.oneIn(5)) {
    const behind = damage(dice, dice.of(files), dice.of(files));
    form.set('bg_image_file', new Blob([new Uint8Array(behind)]), 'background');
  }
  const { fault, name } = await faultOf(await service.post(form)).catch((error: unknown) => ({
    fault: String(error),
    name: 'no answer',
  }));
  if (fault !== undefined) t.fail(`seed ${own}: ${name} ${fault} ${JSON.stringify(fields)}`);
  return name;
}

test('damaged images are answered as the contract says, whatever the options', async (t) => {
  t.timeout(((seconds || 0) + 110) * 1000);
  const service = await startService(t, {
    engine: t.context.engine,
    credits: 1e6,
    rate: 1e9,
    inputFormats: ['gif', 'tiff', 'avif', 'heic'],
  });
  const files = await corpus();
  const counts = new Map<string, number>();
  const end = performance.now() + seconds * 1000;
  const more = (done: number) =>
    Number.isNaN(seconds) ? done < count : done === 0 || performance.now() < end;
  let next = 0;
  const lane = async () => {
    while (more(next)) {
      const name = await one(t, service, files, seed + next++);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  };
  await Promise.all([lane(), lane(), lane()]);
  t.log(
    `${next} cases from seed ${seed} on: ${[...counts]
      .sort()
      .map(([name, n]) => `${name} ${n}`)
      .join(', ')}`,
  );
  t.is(await service.stores.ledger.openReservations(), 0);
  t.deepEqual(await service.stores.ledger.verify(), []);
  t.is(service.engine.running, 0);
});
