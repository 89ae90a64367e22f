// npm start: sets up what is missing, then serves. Arguments go to `cutout serve`.
import { spawn } from 'node:child_process';
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { main, root } from './setup/paths.js';
import { processSettings, startWithSignals } from './setup/process.js';
import { reportFailure } from './setup/report.js';

await onSupportedNode();
try {
  await setup();
} catch (error) {
  reportFailure(error);
  process.exit();
}

const child = startWithSignals(() =>
  spawn(process.execPath, ['--enable-source-maps', main, 'serve', '--pull', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
    env: { ...processSettings(), ...process.env },
  }),
);
child.on('close', (code, signal) => {
  process.exitCode = signal ? 1 : (code ?? 1);
});
