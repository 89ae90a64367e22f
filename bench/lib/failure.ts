/** Ends the program with this exit status, the message on standard error. */
export class BenchFailure extends Error {
  override readonly name = 'BenchFailure';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
