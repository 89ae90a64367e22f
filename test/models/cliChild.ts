/** `cutout models …` as a program, for tests: node cliChild.js MODELS_DIR CATALOGUE_DIR ARGUMENTS… */
import { modelsCommand } from '../../src/cli/models.ts';

const [modelsDir = '', catalogueDir = '', ...args] = process.argv.slice(2);
const command = modelsCommand({
  modelsDir,
  catalogueDir,
  defaultNetwork: 'tiny',
  secondNetwork: async () => process.env['CUTOUT_TEST_SECOND'],
  target: () => ({
    device: 'cpu',
    requested: 'auto',
    requestedOperators: 'auto',
    instructionSets: ['avx512_vnni'],
    operators: [],
  }),
  out: process.stdout,
});
try {
  await command.parseAsync(args, { from: 'user' });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
