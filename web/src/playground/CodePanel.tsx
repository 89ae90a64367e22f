import { useState } from 'preact/hooks';
import { languages, type Request } from '../lib/code.ts';
import { CopyButton } from '../ui/CopyButton.tsx';
import { Tabs } from '../ui/Tabs.tsx';

/** The request that the button sends, live, in three languages. */
export function CodePanel({ request }: { readonly request: Request }) {
  const [chosen, choose] = useState<string>('curl');
  const text = (languages.find(({ id }) => id === chosen) ?? languages[0]).write(request);
  return (
    <section class="code stack" aria-label="This request as a program">
      <div class="row spread">
        <h2>The same request</h2>
        <CopyButton text={text} />
      </div>
      <Tabs label="Language" tabs={languages} chosen={chosen} choose={choose}>
        <pre tabIndex={0} data-testid="code">
          {text}
        </pre>
      </Tabs>
      <p class="soft small">
        The programs read the key from <code>CUTOUT_KEY</code>.
      </p>
    </section>
  );
}
