// node deploy/local: three nodes, nginx, PostgreSQL and Redis on this machine, until Ctrl-C.
import { Command, InvalidArgumentError } from 'commander';
import { modelsFolder } from '../../bench/lib/paths.ts';
import { Cluster, clusterMissing } from './cluster.ts';

const whole = (from: number, to: number) => (text: string) => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < from || value > to)
    throw new InvalidArgumentError(`Expected a whole number from ${from} to ${to}.`);
  return value;
};

interface Options {
  readonly nodes: number;
  readonly port: number;
}

const say = (line: string) => void process.stderr.write(`${line}\n`);

async function run({ nodes, port }: Options): Promise<void> {
  if (clusterMissing !== undefined) throw new Error(clusterMissing);
  const own = Object.entries(process.env).filter(
    (setting): setting is [string, string] => setting[0].startsWith('CUTOUT_') && setting[1] !== undefined,
  );
  const settings = { CUTOUT_MODELS_DIR: modelsFolder(), ...Object.fromEntries(own) };
  const stopped = new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
  const cluster = await Cluster.start({ nodes, port, settings, say });
  say(
    [
      '',
      `Cutout answers on ${cluster.url}`,
      `API key     ${cluster.key}`,
      ...cluster.nodes.map(
        ({ url, pid, log }, index) => `Node ${index + 1}      ${url}  process ${pid}  ${log}`,
      ),
      `PostgreSQL  ${cluster.databaseUrl}`,
      `Redis       ${cluster.redis.url}`,
      '',
      `  curl -H 'X-Api-Key: ${cluster.key}' -F image_file=@photo.jpg -F size=auto -o cutout.png ${cluster.url}/v1.0/removebg`,
      '',
      'Ctrl-C ends all of it.',
    ].join('\n'),
  );
  await stopped;
  say('Stopping …');
  await cluster.stop();
}

const program = new Command('deploy/local')
  .description(
    'Several nodes behind nginx on this machine, with PostgreSQL and Redis, all in temporary folders.\nCUTOUT_… settings of the surroundings reach every node. Needed: postgresql, redis-server, nginx-light.',
  )
  .option('--nodes <number>', 'how many nodes', whole(1, 16), 3)
  .option('--port <port>', 'port of nginx', whole(1, 65535), 8080)
  .action((options: Options) => run(options));

try {
  await program.parseAsync();
} catch (error) {
  say(`deploy/local: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
