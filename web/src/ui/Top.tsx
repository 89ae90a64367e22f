import icon from '../style/icon.svg';

const pages = [
  ['/', 'Playground'],
  ['/console', 'Console'],
  ['/docs', 'API'],
] as const;

/** Name of the service and links to its other pages. */
export function Top({ here }: { readonly here: (typeof pages)[number][0] }) {
  return (
    <header class="top">
      <a class="brand" href="/">
        <img src={icon} alt="" />
        Cutout
      </a>
      <nav aria-label="Pages">
        {pages.map(([path, name]) => (
          <a key={path} href={path} aria-current={path === here ? 'page' : undefined}>
            {name}
          </a>
        ))}
      </nav>
    </header>
  );
}
