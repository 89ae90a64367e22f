import test from 'ava';
import sharp from 'sharp';
import { probeImage } from '../../src/cutout/probeInputs.ts';
import type { Length } from '../../src/geometry/length.ts';
import { wholeImage } from '../../src/geometry/roi.ts';
import { contractLimits } from '../../src/image/types.ts';

test('the region of interest is checked against the upright image', async (t) => {
  const create = { width: 40, height: 20, channels: 3, background: 'white' } as const;
  // Upright it is 20 wide and 40 high.
  const lying = await sharp({ create }).withMetadata({ orientation: 6 }).jpeg().toBuffer();
  const px = (value: number): Length => ({ value, unit: 'px' });
  const percent = (value: number): Length => ({ value, unit: '%' });
  const probed = (x1: Length, y1: Length, x2: Length, y2: Length) =>
    probeImage({ roi: { x1, y1, x2, y2 } }, lying, contractLimits);
  const { width, height } = await probed(px(0), px(0), px(20), px(40));
  t.deepEqual([width, height], [20, 40]);
  await t.notThrowsAsync(probeImage({ roi: wholeImage }, lying, contractLimits));
  await t.notThrowsAsync(probed(percent(10), px(0), percent(90), px(40)));
  for (const [x2, y2] of [
    [px(21), px(40)],
    [px(20), px(41)],
    [percent(101), percent(100)],
  ] as const)
    await t.throwsAsync(probed(px(0), px(0), x2, y2), { code: 'roi_exceeds_bounds' });
  await t.throwsAsync(probed(percent(90), px(0), percent(10), px(40)), { code: 'roi_region_empty' });
});
