import { useState } from 'preact/hooks';
import { languages, type Request } from '../../../src/http/openapi/programs.ts';
import { CopyButton } from '../ui/CopyButton.tsx';
import { Tabs } from '../ui/Tabs.tsx';

/** The request that the button sends, in several languages. */
export function CodePanel({ request }: { readonly request: Request }) {
  const [chosen, choose] = useState<string>('curl');
  const text = (languages.find(({ id }) => id === chosen) ?? languages[0]).write(request);
  return (
    <div class="stack">
      <Tabs label="Language" tabs={languages} chosen={chosen} choose={choose}>
        <pre tabIndex={0} data-testid="code">
          {text}
        </pre>
      </Tabs>
      <div class="row spread">
        <p class="soft small">
          The programs read the key from <code>CUTOUT_KEY</code>.
        </p>
        <CopyButton text={text} />
      </div>
    </div>
  );
}
