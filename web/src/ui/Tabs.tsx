import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface Tab {
  readonly id: string;
  readonly name: string;
}

/** Tabs by the ARIA Authoring Practices: arrow keys move the selection, and the panel follows. */
export function Tabs<T extends Tab>({
  label,
  tabs,
  chosen,
  choose,
  children,
}: {
  readonly label: string;
  readonly tabs: readonly T[];
  readonly chosen: string;
  readonly choose: (id: string) => void;
  readonly children: ComponentChildren;
}) {
  const prefix = useId();
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(({ id }) => id === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    choose(next.id);
    document.getElementById(`${prefix}-${next.id}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ id, name }) => (
          <button
            key={id}
            id={`${prefix}-${id}`}
            type="button"
            role="tab"
            aria-selected={id === chosen}
            aria-controls={`${prefix}-panel`}
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => choose(id)}
          >
            {name}
          </button>
        ))}
      </div>
      <div id={`${prefix}-panel`} role="tabpanel" aria-labelledby={`${prefix}-${chosen}`}>
        {children}
      </div>
    </>
  );
}
