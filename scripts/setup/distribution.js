import { readFileSync } from 'node:fs';

/** How packages are named and installed, by family of distributions. */
const FAMILIES = [
  {
    ids: ['debian', 'ubuntu'],
    install: 'apt-get install',
    names: { cxx: 'g++', cmake: 'cmake', make: 'make' },
  },
  {
    ids: ['fedora', 'rhel', 'centos'],
    install: 'dnf install',
    names: { cxx: 'gcc-c++', cmake: 'cmake', make: 'make' },
  },
  {
    ids: ['suse', 'opensuse'],
    install: 'zypper install',
    names: { cxx: 'gcc-c++', cmake: 'cmake', make: 'make' },
  },
  {
    ids: ['arch'],
    install: 'pacman -S',
    names: { cxx: 'gcc', cmake: 'cmake', make: 'make' },
  },
  {
    ids: ['alpine'],
    install: 'apk add',
    names: { cxx: 'g++', cmake: 'cmake', make: 'make' },
  },
];

/** The text of os-release; empty on a system that does not name itself. */
export function readOsRelease() {
  for (const file of ['/etc/os-release', '/usr/lib/os-release']) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // The next place, or none.
    }
  }
  return '';
}

/** One field of os-release, or ''. */
export const fieldOf = (osRelease, name) =>
  new RegExp(`^${name}=["']?([^"'\n]*)["']?$`, 'm').exec(osRelease)?.[1] ?? '';

/** The system's family, or undefined. A distribution's own name takes precedence over those it is like. */
export function familyOf(osRelease) {
  const ids = `${fieldOf(osRelease, 'ID')} ${fieldOf(osRelease, 'ID_LIKE')}`.split(/\s+/);
  for (const id of ids) {
    const family = FAMILIES.find((each) => each.ids.includes(id));
    if (family) return family;
  }
  return undefined;
}
