// npm run bench -- NAME [options]: measures, prints a table, and writes JSON and an HTML page on request.
import { benches } from './benches.ts';
import { BenchFailure } from './lib/failure.ts';
import { createProgram } from './program.ts';

// Processes started here end with the bench: see startServer.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

try {
  await createProgram(benches, { out: process.stdout, err: process.stderr }).parseAsync();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  if (process.env['DEBUG'] !== undefined) console.error(error);
  process.exitCode = error instanceof BenchFailure ? error.exitCode : 1;
}
