import { closeSync, openSync, readSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

/** Processors as named in ELF headers. */
const machines = { x64: 62, arm64: 183 };
/** Library folders by distribution: Debian and Ubuntu, Fedora and openSUSE, Arch. */
const multiarch = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };
const systemFolders = [`/usr/lib/${multiarch[process.arch]}`, '/usr/lib64', '/usr/lib', '/usr/local/lib'];

/** Whether a file is a library that this process can load; /usr/lib has 32-bit ones on some systems. */
function fits(file) {
  const head = Buffer.alloc(20);
  try {
    const descriptor = openSync(file, 'r');
    try {
      readSync(descriptor, head);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false;
  }
  const elf64 = head.toString('latin1', 0, 5) === '\x7fELF\x02';
  return elf64 && head.readUInt16LE(18) === machines[process.arch];
}

/** Path of the system's jemalloc, or undefined. */
export const findJemalloc = (folders = systemFolders) =>
  folders.map((folder) => path.join(folder, 'libjemalloc.so.2')).find(fits);

/**
 * Environment that a server process needs before it starts; values set by the owner take precedence.
 * Memory: glibc keeps freed images in one arena per thread, so jemalloc is used if it is installed and
 * the number of arenas is limited otherwise. libuv's pool decodes and encodes: one thread per core and some
 * for file system and name look-ups.
 */
export function processSettings() {
  const jemalloc = findJemalloc();
  return {
    ...(jemalloc ? { LD_PRELOAD: jemalloc } : { MALLOC_ARENA_MAX: '2' }),
    UV_THREADPOOL_SIZE: String(Math.max(4, availableParallelism() + 2)),
  };
}

/**
 * Starts a child and passes signals on to it, from before its first output. On this terminal it receives Ctrl-C itself, but
 * not a signal sent to this process only.
 * @template {import('node:child_process').ChildProcess} Child
 * @param {() => Child} start
 */
export function startWithSignals(start) {
  /** @type {Child | undefined} */
  let child;
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child?.kill(signal));
  process.on('SIGINT', () => {});
  child = start();
  return child;
}
