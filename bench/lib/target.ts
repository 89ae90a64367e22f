import { type Client, openClient } from './client.ts';
import { startServer } from './server.ts';

export interface Target {
  readonly client: Client;
  /** For the report: the measured server. */
  readonly server: string;
  readonly address: string;
  readonly key: string;
  /** Of a server that was started here. */
  readonly pid?: number;
  close(): Promise<void>;
}

/** The server at the given address, or one started here with this environment. */
export async function openTarget(
  { url, key }: { readonly url?: string; readonly key?: string },
  env: NodeJS.ProcessEnv = {},
): Promise<Target> {
  if (url !== undefined) {
    const known = key ?? process.env['CUTOUT_API_KEY'];
    if (known === undefined) throw new Error('--url needs --key (or CUTOUT_API_KEY)');
    const client = openClient({ url, key: known });
    return { client, server: url, address: url, key: known, close: () => client.close() };
  }
  const own = await startServer(env);
  const client = openClient(own);
  return {
    client,
    server: 'started here',
    address: own.url,
    key: own.key,
    pid: own.pid,
    close: async () => {
      await client.close();
      await own.stop();
    },
  };
}
