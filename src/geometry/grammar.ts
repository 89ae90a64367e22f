/** How the text of one option is read. Texts come trimmed and are never empty (docs/contract.md section 2). */
export interface Grammar<T> {
  /** undefined: the text is not of this grammar. */
  readonly parse: (text: string) => T | undefined;
  /** The grammar in words: "Expected …". */
  readonly expected: string;
  /** Texts of this grammar, for documents. */
  readonly examples: readonly string[];
}
