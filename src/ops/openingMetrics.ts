import { Gauge, type Registry } from 'prom-client';

/** What is read of each network that is being opened at a scrape (OpeningStep of src/engine/types.ts). */
export interface OpeningSource {
  readonly network: string;
  readonly step: number;
  readonly steps: number;
  readonly seconds: number;
}

/** Metrics with the label `network`, without values while none is being opened. */
export function registerOpening(registers: Registry[], opening: () => readonly OpeningSource[]): void {
  const gauge = (name: string, help: string, value: (source: OpeningSource) => number) =>
    new Gauge({
      name: `cutout_network_opening_${name}`,
      help,
      labelNames: ['network'],
      registers,
      collect() {
        this.reset();
        for (const source of opening()) this.set({ network: source.network }, value(source));
      },
    });
  gauge('step', 'Step that the opening of the network is at, from 1 on.', ({ step }) => step);
  gauge('steps', 'Steps of its opening: sizes of batches times GPUs.', ({ steps }) => steps);
  gauge('seconds', 'Time since its opening began.', ({ seconds }) => seconds);
}
