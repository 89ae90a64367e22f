import test from 'ava';
import { settingsOf } from '../../src/cutout/request.ts';
import type { Form } from '../../src/http/form.ts';
import { parseCutout } from '../../src/http/route/cutout/schema.ts';

const settings = (texts: Record<string, string>, files: Record<string, string> = {}): string => {
  const form: Form = {
    text: new Map(Object.entries({ image_url: 'http://example.com/a.jpg', ...texts })),
    files: new Map(
      Object.entries(files).map(([name, data]) => [name, { data: Buffer.from(data), name: undefined }]),
    ),
  };
  return settingsOf(parseCutout(form));
};

const alike: readonly (readonly [Record<string, string>, Record<string, string>])[] = [
  [{}, { size: 'preview', type: 'auto', format: 'auto', roi: '0% 0% 100% 100%', crop: 'false' }],
  [{ size: 'full' }, { size: '4K' }],
  [{ format: 'jpg' }, { format: 'JPEG' }],
  [{ bg_color: '#fff' }, { bg_color: 'white' }],
  [{}, { bg_color: 'transparent' }],
  [{}, { crop_margin: '10px' }],
  [
    { 'shadow_type[car]': 'drop', 'shadow_type[person]': 'none' },
    { 'shadow_type[person]': 'none', 'shadow_type[car]': 'drop' },
  ],
  [{}, { image_url: 'http://example.com/b.jpg' }],
];

for (const [one, other] of alike) {
  test(`${JSON.stringify(one)} and ${JSON.stringify(other)} ask for the same`, (t) => {
    t.is(settings(one), settings(other));
  });
}

test('whatever changes the result changes the settings', (t) => {
  const all = [
    {},
    { size: 'full' },
    { type: 'car' },
    { type_level: '2' },
    { format: 'png' },
    { channels: 'alpha' },
    { roi: '0 0 50% 50%' },
    { crop: '1' },
    { crop: '1', crop_margin: '5px' },
    { scale: '50%' },
    { position: '10%' },
    { add_shadow: '1' },
    { shadow_type: 'drop' },
    { shadow_type: 'drop', shadow_opacity: '20' },
    { bg_color: 'red' },
    { bg_color: 'blue' },
    { bg_image_url: 'http://example.com/b.jpg' },
  ].map((texts) => settings(texts));
  t.is(new Set(all).size, all.length);
});

test('a request is frozen', (t) => {
  const request = parseCutout({ text: new Map([['image_url', 'http://example.com/']]), files: new Map() });
  t.true(Object.isFrozen(request));
});
