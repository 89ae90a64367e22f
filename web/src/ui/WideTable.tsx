import type { ComponentChildren } from 'preact';

/** A table that scrolls by itself, by keyboard too, where it is wider than its place. */
export function WideTable({
  label,
  testId,
  children,
}: {
  /** What the table holds. */
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
