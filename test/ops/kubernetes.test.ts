import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import path from 'node:path';
import type { ExecutionContext } from 'ava';
import { root } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const when = unless(hasKubectl ? undefined : 'kubectl is not installed');

/** Of the program, which names its images. */
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };

/** Resources that `kubectl apply -k` would send, by kind. Needs no cluster. */
function build(t: ExecutionContext, variant: string): Map<string, string> {
  const folder = path.join(root, 'deploy', 'kubernetes', variant);
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  t.is(status, 0, stderr);
  return new Map(stdout.split(/^---$/m).map((text) => [/^kind: (\w+)$/m.exec(text)?.[1] ?? '', text]));
}

when('kubectl: the base has all its parts, and they find each other', (t) => {
  const parts = build(t, 'base');
  const kinds = ['Deployment', 'HorizontalPodAutoscaler', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'];
  t.deepEqual([...parts.keys()].sort(), kinds);
  const deployment = parts.get('Deployment') ?? '';
  t.regex(deployment, /^ {4}matchLabels:\n {6}app: cutout$/m);
  t.regex(deployment, /^ {6}labels:\n {8}app: cutout$/m);
  t.regex(parts.get('Service') ?? '', /^ {2}selector:\n {4}app: cutout$/m);
  t.regex(parts.get('PodDisruptionBudget') ?? '', /matchLabels:\n {6}app: cutout$/m);
  t.regex(parts.get('HorizontalPodAutoscaler') ?? '', /kind: Deployment\n {4}name: cutout$/m);
  const [, port = ''] = /targetPort: (\w+)/.exec(parts.get('Service') ?? '') ?? [];
  t.regex(deployment, new RegExp(`containerPort: 8080\\n\\s+name: ${port}$`, 'm'));
  t.is(/image: (.*)$/m.exec(deployment)?.[1], `registry.example.com/cutout:${version}`);
  t.notRegex(deployment, /nvidia/);
});

when('kubectl: the GPU variant is the base on other nodes with another image', (t) => {
  const [base, gpu] = [build(t, 'base'), build(t, 'gpu')];
  const deployment = gpu.get('Deployment') ?? '';
  t.regex(deployment, /nodeSelector:\n\s+nvidia\.com\/gpu\.present: "true"$/m);
  t.regex(deployment, /nvidia\.com\/gpu: "1"$/m);
  t.regex(deployment, /name: CUTOUT_DEVICE\n\s+value: cuda$/m);
  t.is(/image: (.*)$/m.exec(deployment)?.[1], `registry.example.com/cutout:${version}-cuda`);
  t.regex(deployment, /readOnlyRootFilesystem: true$/m);
  base.delete('Deployment');
  gpu.delete('Deployment');
  t.deepEqual(gpu, base);
});

interface Rule {
  readonly ports?: readonly { readonly port: string | number; readonly protocol?: string }[];
  readonly from?: readonly unknown[];
  readonly to?: readonly {
    readonly ipBlock?: { readonly cidr: string; readonly except: readonly string[] };
  }[];
}
interface Policy {
  readonly kind: string;
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly policyTypes: readonly string[];
    readonly ingress: readonly Rule[];
    readonly egress: readonly Rule[];
  };
}

/** `kubectl create --dry-run=client` would ask a cluster for its types; this command reads only the file. */
function policyOf(t: ExecutionContext): Policy {
  const file = path.join(root, 'deploy', 'kubernetes', 'base', 'network.yaml');
  const { status, stdout, stderr } = spawnSync(
    'kubectl',
    ['patch', '--local', '--filename', file, '--type', 'merge', '--patch', '{}', '--output', 'json'],
    { encoding: 'utf8' },
  );
  t.is(status, 0, stderr);
  return JSON.parse(stdout) as Policy;
}

when(
  'kubectl: the HTTP port is for all, metrics are for the monitoring namespace, all else is closed',
  (t) => {
    const { spec } = policyOf(t);
    t.deepEqual(spec.podSelector.matchLabels, { app: 'cutout' });
    t.deepEqual([...spec.policyTypes].sort(), ['Egress', 'Ingress']);
    const toPort = (port: string) =>
      spec.ingress.filter(({ ports }) => ports?.some((each) => each.port === port));
    t.deepEqual(spec.ingress.flatMap(({ ports = [] }) => ports.map(({ port }) => port)).sort(), [
      'http',
      'metrics',
    ]);
    t.is(toPort('http')[0]?.from, undefined);
    t.deepEqual(toPort('metrics')[0]?.from, [
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } },
    ]);
    const deployment = build(t, 'base').get('Deployment') ?? '';
    for (const name of ['http', 'metrics'])
      t.regex(deployment, new RegExp(`containerPort: \\d+\\n\\s+name: ${name}$`, 'm'));
  },
);

when(
  'kubectl: nodes reach names, their stores and the internet, and neither the cluster nor metadata',
  (t) => {
    const { egress } = policyOf(t).spec;
    const open = egress
      .filter(({ to }) => to === undefined)
      .flatMap(({ ports = [] }) => ports.map(({ port }) => port));
    t.deepEqual([...new Set(open)].sort(), [53, 5432, 6379]);
    const blocks = egress.flatMap(({ to = [] }) => to.map(({ ipBlock }) => ipBlock));
    const closed = new BlockList();
    for (const { except } of blocks.filter((block) => block !== undefined))
      for (const block of except) {
        const [address = '', bits] = block.split('/');
        closed.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
      }
    for (const address of [
      '10.96.0.1',
      '172.17.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '168.63.129.16',
      '100.100.100.200',
    ])
      t.true(closed.check(address), address);
    for (const address of ['fd00:ec2::254', 'fe80::1']) t.true(closed.check(address, 'ipv6'), address);
    for (const address of ['93.184.216.34', '172.32.0.1']) t.false(closed.check(address), address);
    t.false(closed.check('2606:2800:220:1::1', 'ipv6'));
    t.deepEqual(
      egress.filter(({ to }) => to !== undefined).flatMap(({ ports = [] }) => ports.map(({ port }) => port)),
      [80, 443],
    );
  },
);
