import test from 'ava';
import { isPublicAddress, isPublicElsewhere, ownAddresses } from '../../src/fetch/address.ts';

const refused = {
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1', 'fec0::1'],
  'link-local, cloud metadata': [
    '169.254.169.254',
    '169.254.0.1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
  ],
  'a cloud behind a public address': ['168.63.129.16'],
  'clouds elsewhere': ['100.100.100.200', '192.0.0.192', 'fd20:ce::254'],
  'shared (CGNAT)': ['100.64.0.1', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  'reserved, documentation, benchmarking': [
    '192.0.0.8',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '240.0.0.1',
    '255.255.255.255',
    '2001:db8::1',
    '3fff::1',
    '5f00::1',
    '4000::1',
    '100::1',
  ],
  'mapped, compatible, translated': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '::127.0.0.1',
    '::ffff:0:8.8.8.8',
    '64:ff9b::a00:1',
    '64:ff9b:1::a00:1',
  ],
  tunnelled: [
    '2002:7f00:1::',
    '2606:2800::5efe:a00:5',
    '2606:2800::200:5efe:a00:5',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '192.88.99.1',
  ],
  'not an address': ['', 'localhost', '127.1', '0x7f000001', '2130706433', '1.2.3.4.5', '2606:4700::1111%1'],
};

for (const [kind, addresses] of Object.entries(refused)) {
  test(`refused: ${kind}`, (t) => {
    for (const address of addresses) t.false(isPublicAddress(address), address);
  });
}

test('public addresses are allowed', (t) => {
  for (const address of [
    '1.1.1.1',
    '8.8.8.8',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450::1',
  ])
    t.true(isPublicAddress(address), address);
});

test("this machine's own addresses are refused though they are public, as they are at that moment", (t) => {
  let own = ['8.8.8.8', '2606:4700:0:0:0:0:0:1111', 'fe80::1%eth0'];
  const allowed = isPublicElsewhere(() => own);
  t.false(allowed('8.8.8.8'));
  t.false(allowed('2606:4700::1111'));
  t.true(allowed('1.1.1.1'));
  t.false(allowed('10.0.0.1'));
  own = ['1.1.1.1'];
  t.true(allowed('8.8.8.8'));
  t.false(allowed('1.1.1.1'));
  t.true(ownAddresses().includes('127.0.0.1'));
});
