/** Parser of one option. Texts are trimmed and never empty (docs/contract.md section 2). */
export interface OptionParser<T> {
  /** Undefined if the text does not match the grammar. */
  readonly parse: (text: string) => T | undefined;
  /** The grammar in words: "Expected …". */
  readonly expected: string;
  /** Texts of this grammar, for documents. */
  readonly examples: readonly string[];
}
