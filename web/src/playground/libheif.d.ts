/** libheif as WebAssembly, inside of the module. */
declare module 'libheif-js/libheif-wasm/libheif-bundle.mjs' {
  import type { Libheif } from '../../../src/image/heif/libheif.ts';

  const open: (options: { print: () => void; printErr: () => void }) => Libheif;
  export default open;
}
