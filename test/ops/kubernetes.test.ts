import { spawnSync } from 'node:child_process';
import path from 'node:path';
import type { ExecutionContext } from 'ava';
import { root } from '../fixtures/cli.ts';
import { unless } from '../fixtures/left_out.ts';

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const when = unless(hasKubectl ? undefined : 'kubectl is not installed');

/** What `kubectl apply -k` would send, by kind. Needs no cluster. */
function build(t: ExecutionContext, variant: string): Map<string, string> {
  const folder = path.join(root, 'deploy', 'kubernetes', variant);
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  t.is(status, 0, stderr);
  return new Map(stdout.split(/^---$/m).map((text) => [/^kind: (\w+)$/m.exec(text)?.[1] ?? '', text]));
}

when('kubectl: the base has all its parts, and they find each other', (t) => {
  const parts = build(t, 'base');
  const kinds = ['Deployment', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Service'];
  t.deepEqual([...parts.keys()].sort(), kinds);
  const deployment = parts.get('Deployment') ?? '';
  t.regex(deployment, /^ {4}matchLabels:\n {6}app: cutout$/m);
  t.regex(deployment, /^ {6}labels:\n {8}app: cutout$/m);
  t.regex(parts.get('Service') ?? '', /^ {2}selector:\n {4}app: cutout$/m);
  t.regex(parts.get('PodDisruptionBudget') ?? '', /matchLabels:\n {6}app: cutout$/m);
  t.regex(parts.get('HorizontalPodAutoscaler') ?? '', /kind: Deployment\n {4}name: cutout$/m);
  const [, port = ''] = /targetPort: (\w+)/.exec(parts.get('Service') ?? '') ?? [];
  t.regex(deployment, new RegExp(`containerPort: 8080\\n\\s+name: ${port}$`, 'm'));
  t.regex(deployment, /image: registry\.example\.com\/cutout:latest$/m);
  t.notRegex(deployment, /nvidia/);
});

when('kubectl: the GPU variant is the base on other nodes with another image', (t) => {
  const [base, gpu] = [build(t, 'base'), build(t, 'gpu')];
  const deployment = gpu.get('Deployment') ?? '';
  t.regex(deployment, /nodeSelector:\n\s+nvidia\.com\/gpu\.present: "true"$/m);
  t.regex(deployment, /nvidia\.com\/gpu: "1"$/m);
  t.regex(deployment, /name: CUTOUT_DEVICE\n\s+value: cuda$/m);
  t.regex(deployment, /image: registry\.example\.com\/cutout:cuda$/m);
  t.regex(deployment, /readOnlyRootFilesystem: true$/m);
  base.delete('Deployment');
  gpu.delete('Deployment');
  t.deepEqual(gpu, base);
});
