import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { RunError, writeResult } from '../../src/cli/run/results.ts';
import { cli, modelsFolder, temporaryFolder } from '../fixtures/cli.ts';
import { heic } from '../fixtures/heic.ts';
import { scene } from '../fixtures/images.ts';

async function setUp(t: ExecutionContext, files: Record<string, Buffer | string>) {
  const folder = temporaryFolder(t);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  const env = { CUTOUT_DATA_DIR: temporaryFolder(t), CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)) };
  const run = (args: string[], input?: Buffer) => cli(t, ['run', ...args], env, input, folder);
  const tree = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
      .sort();
  const image = (name: string) => sharp(readFileSync(path.join(folder, name))).metadata();
  return { folder, run, tree, image };
}

test.serial('a file: the result is written beside it, at full size, and the input stays', async (t) => {
  const photo = await scene({ width: 900, height: 600 });
  const { run, tree, image, folder } = await setUp(t, { 'photo.jpg': photo });
  const { code, stderr, stdout } = await run(['photo.jpg']);
  t.is(code, 0, stderr);
  t.deepEqual(tree(), ['photo-cutout.png', 'photo.jpg']);
  t.like(await image('photo-cutout.png'), { format: 'png', width: 900, height: 600, channels: 4 });
  t.true(readFileSync(path.join(folder, 'photo.jpg')).equals(photo));
  t.regex(stderr, /^1 image cut out in \d+\.\d s\.\n$/);
  t.is(stdout.length, 0);
});

test.serial('folders and globs keep their structure below --out, each file once', async (t) => {
  const photo = await scene();
  const { run, tree } = await setUp(t, {
    'in/a.jpg': photo,
    'in/deep/b.PNG': await scene({ format: 'png' }),
    'in/notes.txt': 'no image',
    'more/c.webp': await scene({ format: 'webp' }),
    'more/d.jpeg': photo,
    'more/e.txt': 'x',
  });
  const { code, stderr } = await run(['in', 'in/a.jpg', 'more/*.{webp,jpeg}', '--out', 'out', '--jobs', '3']);
  t.is(code, 0, stderr);
  t.regex(stderr, /^4 images cut out/);
  t.deepEqual(
    tree().filter((file) => file.startsWith('out')),
    ['out/a.png', 'out/c.png', 'out/d.png', 'out/deep/b.png'],
  );
});

test.serial('of a folder named like an image only the images count, and a glob matches files', async (t) => {
  const photo = await scene();
  const { run, tree } = await setUp(t, {
    'in/a.jpg': photo,
    'in/shots.jpg/b.jpg': photo,
    'in/shots.jpg/notes.txt': 'no image',
  });
  const folder = await run(['in', '--out', 'folder']);
  t.is(folder.code, 0, folder.stderr);
  const pattern = await run(['in/*', '--out', 'pattern']);
  t.is(pattern.code, 0, pattern.stderr);
  t.deepEqual(
    tree().filter((file) => !file.startsWith('in')),
    ['folder/a.png', 'folder/shots.jpg/b.png', 'pattern/a.png'],
  );
});

test.serial('--mask says where the subject is, of one image', async (t) => {
  const size = { width: 120, height: 80 };
  const mask = await sharp(
    Buffer.from(Uint8Array.from({ length: 120 * 80 }, (_, i) => (i % 120 < 60 ? 255 : 0))),
    { raw: { ...size, channels: 1 } },
  )
    .png()
    .toBuffer();
  const photo = await scene(size);
  const { run, folder } = await setUp(t, { 'a.jpg': photo, 'b.jpg': photo, 'mask.png': mask });
  const { code, stderr } = await run(['a.jpg', '--mask', 'mask.png']);
  t.is(code, 0, stderr);
  const alpha = await sharp(path.join(folder, 'a-cutout.png')).extractChannel('alpha').raw().toBuffer();
  const at = (x: number) => alpha[40 * 120 + x];
  t.deepEqual([at(10), at(50), at(70), at(110)], [255, 255, 0, 0]);

  const several = await run(['a.jpg', 'b.jpg', '--mask', 'mask.png']);
  t.deepEqual([several.code, several.stderr], [1, 'cutout: --mask belongs to one image; give one input.\n']);
  const missing = await run(['b.jpg', '--mask', 'none.png']);
  t.is(missing.code, 1);
  t.is(missing.stderr, 'cutout: The mask none.png cannot be read: There is no such file.\n');
});

test.serial('files of every type are read, and JPEG XL is named as a type that is not', async (t) => {
  const gif = await sharp(await scene())
    .gif()
    .toBuffer();
  const { run, tree } = await setUp(t, {
    'in/a.avif': await sharp(await scene())
      .avif({ effort: 0 })
      .toBuffer(),
    'in/b.tif': await sharp(await scene())
      .tiff()
      .toBuffer(),
    'in/c.gif': gif,
    'in/d.HEIC': heic('tiled'),
    'e.jxl': Buffer.from('ff0afa7f0190080600', 'hex'),
  });
  const { code, stderr } = await run(['in', 'e.jxl', '--out', 'out', '--format', 'avif']);
  t.is(code, 1);
  t.deepEqual(
    tree().filter((file) => file.startsWith('out')),
    ['out/a.avif', 'out/b.avif', 'out/c.avif', 'out/d.avif'],
    stderr,
  );
  t.regex(stderr, /e\.jxl +Invalid file type: .* received jxl/);
});

test.serial('--lossless is for WebP', async (t) => {
  const { run, tree } = await setUp(t, { 'photo.jpg': await scene() });
  const wrong = await run(['photo.jpg', '--lossless']);
  t.is(wrong.code, 1);
  t.regex(wrong.stderr, /--lossless needs --format webp/);
  t.is((await run(['photo.jpg', '-f', 'webp', '--lossless'])).code, 0);
  t.true(tree().includes('photo-cutout.webp'));
});

test.serial('--format and --size', async (t) => {
  const { run, image, tree } = await setUp(t, { 'photo.jpg': await scene({ width: 900, height: 600 }) });
  t.is((await run(['photo.jpg', '-f', 'webp', '-s', 'preview'])).code, 0);
  t.like(await image('photo-cutout.webp'), { format: 'webp', width: 612, height: 408 });
  t.is((await run(['photo.jpg', '--format', 'jpg'])).code, 0);
  t.like(await image('photo-cutout.jpg'), { format: 'jpeg', width: 900, height: 600 });
  t.is((await run(['photo.jpg', '--format', 'zip'])).code, 0);
  t.true(tree().includes('photo-cutout.zip'));
});

test.serial(
  'failures are listed with their reasons, the other files are done, the status is 1',
  async (t) => {
    const photo = await scene();
    const { run, tree } = await setUp(t, {
      'a.jpg': photo,
      'cut.jpg': photo.subarray(0, photo.length / 2),
      'empty.jpg': '',
      'text.jpg': 'just text',
      'white.png': await scene({ subject: 'none', format: 'png' }),
      'z.jpg': photo,
    });
    const { code, stderr } = await run(['.', '--out', 'out']);
    t.is(code, 1);
    t.deepEqual(
      tree().filter((file) => file.startsWith('out')),
      ['out/a.png', 'out/z.png'],
    );
    const lines = stderr.trim().split('\n');
    t.regex(lines[0] ?? '', /^2 images cut out/);
    t.is(lines[1], '4 images failed:');
    t.deepEqual(
      lines
        .slice(2)
        .map((line) => /^ {2}(\S+) {2}/.exec(line)?.[1])
        .sort(),
      ['cut.jpg', 'empty.jpg', 'text.jpg', 'white.png'],
    );
    t.regex(
      stderr,
      /text\.jpg +Invalid file type: Expected jpg\/png\/webp\/avif\/heic\/tiff\/gif, received text/,
    );
    t.regex(stderr, /white\.png +Could not identify foreground in image: No subject was found\./);
  },
);

test.serial('existing inputs and results are not overwritten unless asked', async (t) => {
  const png = await scene({ format: 'png' });
  const { run, folder } = await setUp(t, { 'photo.png': png, 'kept-cutout.png': 'mine', 'kept.png': png });
  const same = await run(['photo.png', '--out', '.']);
  t.is(same.code, 1);
  t.regex(same.stderr, /photo\.png +The result .* would overwrite an input/);
  const forced = await run(['photo.png', '--out', '.', '--overwrite']);
  t.is(forced.code, 1, 'not even with --overwrite');
  t.true(readFileSync(path.join(folder, 'photo.png')).equals(png));

  const there = await run(['kept.png']);
  t.is(there.code, 0);
  t.regex(
    there.stderr,
    /^0 images cut out in .*\n1 image skipped, because the result already exists; --overwrite/,
  );
  t.is(readFileSync(path.join(folder, 'kept-cutout.png'), 'utf8'), 'mine');
  t.is((await run(['kept.png', '--overwrite'])).code, 0);
  t.not(readFileSync(path.join(folder, 'kept-cutout.png'), 'utf8'), 'mine');
});

test.serial('the same command continues a run: what is done is skipped, results are no inputs', async (t) => {
  const photo = await scene();
  const { run, tree, folder } = await setUp(t, { 'in/a.jpg': photo, 'in/deep/b.jpg': photo });
  for (const args of [['in'], ['in', '--out', 'in/done'], ['in/**/*', '--out', 'apart']]) {
    t.is((await run(args)).code, 0);
    const before = tree();
    const again = await run(args);
    t.is(again.code, 0, again.stderr);
    t.regex(again.stderr, /^0 images cut out .*\n(?<all>\d+) images skipped/);
    t.deepEqual(tree(), before, args.join(' '));
  }
  rmSync(path.join(folder, 'in/deep/b-cutout.png'));
  const rest = await run(['in']);
  t.regex(rest.stderr, /^1 image cut out .*\n\d+ images? skipped/);
  t.true(tree().includes('in/deep/b-cutout.png'));
  t.false(
    tree().some((file) => file.includes('.part')),
    'no unfinished file is left',
  );
});

test.serial('two inputs with the same result path: the second is an error', async (t) => {
  const { run } = await setUp(t, { 'a.jpg': await scene(), 'a.png': await scene({ format: 'png' }) });
  for (let i = 0; i < 2; i++) {
    const { code, stderr } = await run(['a.jpg', 'a.png', '--out', 'out', '--jobs', '1']);
    t.is(code, 1);
    t.regex(stderr, /a\.png +The result .*a is already that of a\.jpg; choose another --out/);
  }
  const png = await run(['a.jpg', 'a.png', '--out', 'png', '--format', 'png']);
  t.regex(png.stderr, /a\.png +The result \S+\/png\/a\.png is already that of a\.jpg;/);
});

test.serial('--report has a line for every input, a stop and failures included', async (t) => {
  const { run, folder } = await setUp(t, {
    'a.jpg': await scene(),
    'b.jpg': 'no image',
    'c.jpg': await scene(),
  });
  t.is((await run(['c.jpg', '--out', 'out'])).code, 0);
  const { code } = await run(['.', '--out', 'out', '--report', 'report.csv']);
  t.is(code, 1);
  const lines = readFileSync(path.join(folder, 'report.csv'), 'utf8').trim().split('\r\n').sort();
  t.is(lines.length, 4);
  t.regex(lines[0] ?? '', /^a\.jpg,done,\S+\/out\/a\.png,\d+\.\d\d,,$/);
  t.regex(lines[1] ?? '', /^b\.jpg,failed,,,"Invalid file type: .*",$/);
  t.regex(lines[2] ?? '', /^c\.jpg,skipped,\S+\/out\/c\.png,,,$/);
  t.is(lines[3], 'file,state,result,seconds,reason,uncertainty');
  const bad = await run(['.', '--report', 'a.jpg/report.csv']);
  t.is(bad.code, 1);
  t.regex(bad.stderr, /^cutout: The report a\.jpg\/report\.csv cannot be written: a part of its path is not/);
});

test.serial('--report never replaces an image, and is written when the run has ended', async (t) => {
  const photo = await scene();
  const { run, tree, folder } = await setUp(t, { 'a.jpg': photo, 'b.JPG': photo, plain: photo, r: 'mine' });
  for (const [report, reason] of [
    ['a.jpg', 'it is an input'],
    ['b.JPG', 'it has the name of an image'],
    ['plain', 'it is an input'],
    ['a.png', 'it has the name of an image'],
    ['/dev/null', 'it is not a regular file'],
    ['nothing/r.csv', 'the folder nothing does not exist'],
    ['n'.repeat(256), 'its name is too long'],
  ] as const) {
    const { code, stderr } = await run(['a.jpg', 'plain', '--out', 'out', '--report', report]);
    t.is(code, 1);
    t.is(stderr, `cutout: The report ${report} cannot be written: ${reason}.\n`);
  }
  t.true(readFileSync(path.join(folder, 'a.jpg')).equals(photo));
  t.deepEqual(tree(), ['a.jpg', 'b.JPG', 'plain', 'r']);
  const env = { CUTOUT_DATA_DIR: temporaryFolder(t), CUTOUT_MODELS_DIR: temporaryFolder(t) };
  const failed = await cli(t, ['run', 'a.jpg', '--report', 'r'], env, undefined, folder);
  t.is(failed.code, 1);
  t.is(readFileSync(path.join(folder, 'r'), 'utf8'), 'mine', 'a run that did not start leaves it');
  t.is((await run(['a.jpg', '--report', 'r'])).code, 0);
  t.regex(readFileSync(path.join(folder, 'r'), 'utf8'), /^file,state,[\s\S]*a\.jpg,done,/);
});

test.serial('results in the folder of their inputs are no inputs of the next run', async (t) => {
  const photo = await scene();
  const { run, tree, folder } = await setUp(t, { 'in/a.jpg': photo, 'in/b.jpg': photo });
  const args = ['in', '--out', 'in'];
  t.regex((await run(args)).stderr, /^2 images cut out/);
  const again = await run([...args, '--report', 'r.csv']);
  t.is(again.code, 0, again.stderr);
  t.regex(again.stderr, /^0 images cut out .*\n2 images skipped/);
  t.deepEqual(tree(), ['in/a.jpg', 'in/a.png', 'in/b.jpg', 'in/b.png', 'r.csv']);
  t.regex(readFileSync(path.join(folder, 'r.csv'), 'utf8'), /in\/a\.jpg,skipped,\S+\/in\/a\.png,/);

  const before = readFileSync(path.join(folder, 'in/a.png'));
  const replaced = await run([...args, '--overwrite']);
  t.is(replaced.code, 1);
  t.regex(
    replaced.stderr,
    /^0 images [\s\S]*in\/a\.jpg +The result \S+\/in\/a\.png would overwrite an input/,
  );
  t.true(readFileSync(path.join(folder, 'in/a.png')).equals(before), 'it may be an image of its own');
  const named = await run(['in', 'in/a.png', '--out', 'in']);
  t.regex(
    named.stderr,
    /^0 images cut out .*\n1 image skipped[\s\S]*in\/a\.png +The result .* would overwrite/,
  );
});

test.serial('only regular files are read', async (t) => {
  const { run, folder } = await setUp(t, { 'a.jpg': await scene() });
  execFileSync('mkfifo', [path.join(folder, 'pipe.jpg')]);
  symlinkSync('/dev/zero', path.join(folder, 'zero.jpg'));
  symlinkSync('a.jpg', path.join(folder, 'link.jpg'));
  const { stderr } = await run(['pipe.jpg', 'zero.jpg', 'link.jpg']);
  t.regex(
    stderr,
    /^1 image cut out .*\n2 images failed:\n(?: {2}(?:pipe|zero)\.jpg +It is not a regular file\.\n){2}$/,
  );
});

test.serial(
  'what cannot be read in a folder is a failure, without taking the result of another',
  async (t) => {
    const { run, folder, tree } = await setUp(t, { 'in/b.png': await scene({ format: 'png' }) });
    for (const name of ['in/b.jpg', 'in/deep.jpg', 'in/notes.txt', 'named.jpg'])
      symlinkSync('nothing', path.join(folder, name));
    symlinkSync('loop.jpg', path.join(folder, 'in/loop.jpg'));
    for (const name of ['in/pipe.jpg', 'in/pipe.txt']) execFileSync('mkfifo', [path.join(folder, name)]);
    const { code, stderr } = await run(['in', 'named.jpg', '--out', 'out', '--report', 'r.csv']);
    t.is(code, 1);
    t.regex(stderr, /^1 image cut out .*\n5 images failed:\n/);
    t.deepEqual(tree(), ['in/b.png', 'out/b.png', 'r.csv']);
    const target = 'It is a link whose target does not exist.';
    t.deepEqual(
      readFileSync(path.join(folder, 'r.csv'), 'utf8')
        .split('\r\n')
        .filter((line) => line.includes(',failed,'))
        .sort(),
      [
        `in/b.jpg,failed,,,${target},`,
        `in/deep.jpg,failed,,,${target},`,
        'in/loop.jpg,failed,,,The link leads back to itself.,',
        'in/pipe.jpg,failed,,,It is not a regular file.,',
        `named.jpg,failed,,,${target},`,
      ],
    );
    t.regex(
      (await run(['in/p*.jpg'])).stderr,
      /^0 images [\s\S]*in\/pipe\.jpg +It is not a regular file\.\n$/,
    );
  },
);

test.serial('a folder that cannot be read is a failure, and the others are cut out', async (t) => {
  const { run, folder } = await setUp(t, { 'in/sub/fine.jpg': await scene() });
  const unread = Buffer.concat([Buffer.from(path.join(folder, 'in/bad')), Buffer.from([0xff])]);
  mkdirSync(unread);
  const { code, stderr } = await run(['in', '--out', 'out']);
  t.is(code, 1);
  t.regex(
    stderr,
    /^1 image cut out .*\n1 image failed:\n {2}in\/bad\uFFFD +Its name is not valid UTF-8; rename it\.\n$/,
  );
  t.true(existsSync(path.join(folder, 'out/sub/fine.png')));
  // root reads every folder.
  if (process.getuid?.() === 0) return;
  const closed = path.join(folder, 'closed');
  mkdirSync(closed, { mode: 0 });
  t.regex((await run(['closed'])).stderr, /closed +It is a folder that cannot be read\.\n$/);
});

test.serial('a name that is not valid UTF-8 is reported as such', async (t) => {
  const photo = await scene();
  const { run, folder, tree } = await setUp(t, { 'in/fine\uFFFD.jpg': photo });
  const nameOf = (name: string, ...bytes: number[]) =>
    Buffer.concat([Buffer.from(path.join(folder, name)), Buffer.from(bytes), Buffer.from('.jpg')]);
  writeFileSync(nameOf('named', 0xff, 0xfe), photo);
  // Read by Node.js, all three have the name of the file that can be cut out.
  for (const byte of [0xe8, 0xe9]) writeFileSync(nameOf('in/fine', byte), photo);
  // Node.js gives a program the name that it reads from a folder or from its own arguments.
  const { code, stderr } = await run(['in', 'named\uFFFD\uFFFD.jpg', '--out', 'out']);
  t.is(code, 1);
  t.regex(
    stderr,
    /^1 image cut out .*\n3 images failed:\n(?: {2}(?:in\/fine\uFFFD \(e[89]\)|named\uFFFD\uFFFD)\.jpg +Its name is not valid UTF-8; rename it\.\n){3}$/,
  );
  t.true(tree().includes('out/fine\uFFFD.png'));
});

test.serial('links to folders list no image twice, links to files are images', async (t) => {
  const { run, folder } = await setUp(t, { 'in/z.jpg': await scene() });
  symlinkSync('.', path.join(folder, 'in/again'));
  symlinkSync('z.jpg', path.join(folder, 'in/link.jpg'));
  const { stderr } = await run(['in', '--out', 'out']);
  t.regex(stderr, /^2 images cut out/);
  t.deepEqual(readdirSync(path.join(folder, 'out')).sort(), ['link.png', 'z.png']);
});

test.serial('the name of a result may have the greatest length; a longer one is refused', async (t) => {
  const name = 'n'.repeat(251);
  const { run, tree } = await setUp(t, { [`${name}.jpg`]: await scene() });
  t.is((await run([`${name}.jpg`, '--out', 'out'])).code, 0);
  t.true(tree().includes(`out/${name}.png`));
  const { code, stderr } = await run([`${name}.jpg`]);
  t.is(code, 1);
  t.regex(stderr, / The name of the result is too long\.\n$/);
});

test('a folder in which nothing can be written ends the run', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, 'file'), '');
  for (const file of ['/sys/x.png', path.join(folder, 'file', 'x.png')])
    await t.throwsAsync(writeResult(file, Buffer.from('x'), true), { instanceOf: RunError }, file);
});

test.serial('- reads an image from standard input and writes it to standard output', async (t) => {
  const { run } = await setUp(t, {});
  const { code, stdout, stderr } = await run(
    ['-', '--size', 'preview'],
    await scene({ width: 900, height: 600 }),
  );
  t.is(code, 0, stderr);
  t.like(await sharp(stdout).metadata(), { format: 'png', width: 612, height: 408 });
  const bad = await run(['-'], Buffer.from('no image'));
  t.is(bad.code, 1);
  t.is(bad.stdout.length, 0);
  t.regex(bad.stderr, /^Invalid file type: /);
});

for (const [args, said] of [
  [['nothing.jpg'], /^cutout: There is no file or folder "nothing\.jpg"\.\n$/],
  [['*.jpg'], /^cutout: No images were found in "\*\.jpg"\.\n$/],
  [['*/..'], /^cutout: "\.\." cannot follow a pattern: "\*\/\.\."\. .*\.\n$/],
  [['-', 'a.jpg'], /^cutout: "-" .*\.\n$/],
  [['-', '--out', 'x'], /^cutout: "-" .*\.\n$/],
  [['-', '--report', 'x.csv'], /^cutout: "-" .*\.\n$/],
  [['a.jpg', '--format', 'gif'], /gif/],
  [['a.jpg', '--size', 'huge'], /huge/],
  [['a.jpg', '--jobs', '0'], /jobs/],
  [[], /inputs/],
] as const) {
  test.serial(`run ${args.join(' ')} is refused with one sentence`, async (t) => {
    const { run, tree } = await setUp(t, {});
    const { code, stderr } = await run([...args]);
    t.is(code, 1);
    t.regex(stderr, said);
    t.false(stderr.includes('    at '), stderr);
    t.deepEqual(tree(), []);
  });
}

test.serial('the upload limit does not apply to local files', async (t) => {
  const photo = await scene();
  const padded = Buffer.concat([photo, Buffer.alloc(23 * 1024 * 1024)]);
  const { run } = await setUp(t, { 'large.jpg': padded });
  const { code, stderr } = await run(['large.jpg']);
  t.is(code, 0, stderr);
});
