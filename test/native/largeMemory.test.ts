import { createRequire } from 'node:module';
import test from 'ava';
import { testAddon } from '../../bench/lib/paths.ts';

interface BenchAddon {
  benchKernel(name: string, megapixels: number, threads: number, rounds: number): unknown;
}

/** Pages that the process gets from the system while `rounds` images are refined. */
function pagesOf(rounds: number): number {
  const { benchKernel } = createRequire(import.meta.url)(testAddon) as BenchAddon;
  const { minorPageFault } = process.resourceUsage();
  benchKernel('refine15', 1, 1, rounds);
  return process.resourceUsage().minorPageFault - minorPageFault;
}

test('refinement of one image after another reuses its pages', (t) => {
  pagesOf(1);
  const few = pagesOf(1);
  const many = pagesOf(9);
  // The planes of one image are 12,000 pages.
  t.true(many - few < 8 * 1000, `${many - few} pages for 8 images`);
});
