/** `cutout models …` as a program, for tests: node cliChild.js MODELS_DIR CATALOGUE_DIR ARGUMENTS… */
import { modelsCommand } from '../../src/cli/models.ts';
import { loadConfig } from '../../src/config/readConfig.ts';

const [modelsDir = '', catalogueDir = '', ...args] = process.argv.slice(2);
const command = modelsCommand({
  config: loadConfig({ CUTOUT_MODELS_DIR: modelsDir, CUTOUT_MODEL: 'tiny' }),
  catalogueDir,
  secondNetwork: async () => process.env['CUTOUT_TEST_SECOND'],
  target: () => ({ addon: 'test', operators: [] }),
  open: async ({ model, device }) => {
    throw new Error(`An engine of ${model} is built on ${device}.`);
  },
  out: process.stdout,
});
try {
  await command.parseAsync(args, { from: 'user' });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
