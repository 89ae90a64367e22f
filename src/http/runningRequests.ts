import type { IncomingMessage, ServerResponse } from 'node:http';
import { subscribersDone } from './onResponseEnd.ts';

export type Handler = (req: IncomingMessage, res: ServerResponse) => unknown;

/** Requests that the application works on. Some outlive their connection: their charge is still to be settled. */
export class RunningRequests {
  readonly #application: Handler;
  readonly #running = new Set<Promise<void>>();

  constructor(application: Handler) {
    this.#application = application;
  }

  start(req: IncomingMessage, res: ServerResponse): void {
    // The application answers its own errors. If it throws nevertheless, the connection is closed.
    const running = this.#run(req, res)
      .catch(() => void res.destroy())
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when all of them are processed and the work of their subscribers is done. */
  async done(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(req: IncomingMessage, res: ServerResponse): Promise<void> {
    await this.#application(req, res);
    await subscribersDone(req);
  }
}
