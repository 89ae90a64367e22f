import { fork } from 'node:child_process';
import { once } from 'node:events';
import { childScript } from './paths.ts';

export interface PlainAnswer {
  readonly type: string;
  readonly body: Uint8Array;
}

interface PlainServer {
  readonly url: string;
  readonly pid: number;
  close(): Promise<void>;
}

/**
 * Starts a node:http server in its own process that reads the body of a request and sends `answer`, nothing else: the
 * least that any server on Node.js has to do.
 */
export async function startPlainServer(answer: PlainAnswer): Promise<PlainServer> {
  const child = fork(childScript('plainServerRun.js'), { serialization: 'advanced' });
  const ended = once(child, 'exit');
  const listening = once(child, 'message');
  child.send(answer);
  const [port] = (await Promise.race([
    listening,
    ended.then(([code]) => {
      throw new Error(`plainServerRun.js ended with ${code}`);
    }),
  ])) as [number];
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    close: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
