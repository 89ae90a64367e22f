import type { ComponentChildren } from 'preact';

/** A table that scrolls by itself, also by keyboard, if it is wider than its container. */
export function WideTable({
  label,
  testId,
  children,
}: {
  /** Accessible name of the table. */
  readonly label: string;
  readonly testId?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="wide" aria-label={label} tabIndex={0}>
      <table data-testid={testId}>{children}</table>
    </section>
  );
}
