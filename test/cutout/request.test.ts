import test from 'ava';
import { settingsOf } from '../../src/cutout/request.ts';
import type { Form } from '../../src/http/form.ts';
import { parseCutout } from '../../src/http/route/cutout/schema.ts';

const settings = (texts: Record<string, string>, files: Record<string, string> = {}): string => {
  const form: Form = {
    text: new Map(Object.entries({ image_url: 'http://example.com/a.jpg', ...texts })),
    files: new Map(
      Object.entries(files).map(([name, data]) => [
        name,
        { data: Buffer.from(data), name: undefined, free: () => {} },
      ]),
    ),
  };
  return settingsOf(parseCutout(form));
};

const alike: readonly (readonly [Record<string, string>, Record<string, string>])[] = [
  [{}, { size: 'preview', type: 'auto', format: 'auto', roi: '0% 0% 100% 100%', crop: 'false' }],
  [{ size: 'full' }, { size: '4K' }],
  [{ format: 'jpg' }, { format: 'JPEG' }],
  [{ format: 'png' }, { format: 'png', lossless: 'true' }],
  [{ bg_color: '#fff' }, { bg_color: 'white' }],
  [{}, { bg_color: 'transparent' }],
  [{}, { crop_margin: '10px' }],
  [
    { 'shadow_type[car]': 'drop', 'shadow_type[person]': 'none' },
    { 'shadow_type[person]': 'none', 'shadow_type[car]': 'drop' },
  ],
  [{}, { image_url: 'http://example.com/b.jpg' }],
  // The defaults as clients spell them out.
  [{}, { roi: '0 0 100% 100%', scale: 'original', position: 'original', add_shadow: 'false', crop: '0' }],
  [{ roi: '0px 0px 100% 100%' }, { roi: '0%  0.0px 100.0% 100%' }],
  [{ roi: '0 10% 50% 100%' }, { roi: '0% 10.0% 50% 100.0%' }],
  [{ crop: '1' }, { crop: 'true', crop_margin: '0% 0px' }],
  [
    { crop: '1', crop_margin: '10px 0%' },
    { crop: '1', crop_margin: '10px 0 10px 0px' },
  ],
  [
    { crop: '1', crop_margin: '80%' },
    { crop: '1', crop_margin: '50%' },
  ],
  [{ scale: '50%' }, { scale: '50.0%', position: 'center' }],
  [
    { scale: '50%', position: '50%' },
    { scale: '50%', position: '50% 50%' },
  ],
  [{}, { shadow_type: 'none' }],
  [{}, { shadow_opacity: '70' }],
  [{ add_shadow: 'true' }, { shadow_type: 'drop' }],
  [{ shadow_type: 'drop' }, { shadow_type: 'drop', shadow_opacity: 'auto', add_shadow: 'true' }],
  [{}, { shadow_type: 'drop', shadow_opacity: '0' }],
];

for (const [one, other] of alike) {
  test(`${JSON.stringify(one)} and ${JSON.stringify(other)} are equal requests`, (t) => {
    t.is(settings(one), settings(other));
  });
}

test('every option that changes the result changes the settings', (t) => {
  const all = [
    {},
    { size: 'full' },
    { type: 'car' },
    { type_level: '2' },
    { format: 'png' },
    { format: 'webp' },
    { format: 'webp', lossless: 'true' },
    { format: 'avif' },
    { channels: 'alpha' },
    { roi: '0 0 50% 50%' },
    { roi: '0 0 100px 100%' },
    { roi: '0 1% 100% 100%' },
    { roi: '0 0 100% 99.9%' },
    { crop: '1', crop_margin: '5%' },
    { crop: '1', crop_margin: '0 5%' },
    { scale: '50%', position: 'original' },
    { scale: '100%' },
    { position: 'center' },
    { 'shadow_type[car]': 'drop' },
    { shadow_type: 'drop', 'shadow_opacity[car]': '50' },
    { crop: '1' },
    { crop: '1', crop_margin: '5px' },
    { scale: '50%' },
    { position: '10%' },
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
