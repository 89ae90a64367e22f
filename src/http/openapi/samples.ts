/** How to call the service at an address: complete programs that take the key from CUTOUT_KEY. */
export interface Sample {
  readonly name: string;
  /** Identifies the sample on the page. */
  readonly id: string;
  readonly text: (address: string) => string;
}

const curl = (address: string) => `curl -H "X-Api-Key: $CUTOUT_KEY" \\
  -F image_file=@photo.jpg -F size=auto \\
  --fail -o cutout.png ${address}/v1.0/cutout`;

const javascript = (address: string) => `import { openAsBlob } from 'node:fs';
import { writeFile } from 'node:fs/promises';

const body = new FormData();
body.append('image_file', await openAsBlob('photo.jpg'));
body.append('size', 'auto');
const answer = await fetch('${address}/v1.0/cutout', {
  method: 'POST',
  headers: { 'X-Api-Key': process.env.CUTOUT_KEY },
  body,
});
if (!answer.ok) throw new Error((await answer.json()).errors[0].title);
await writeFile('cutout.png', Buffer.from(await answer.arrayBuffer()));`;

const python = (address: string) => `import os
import requests

with open("photo.jpg", "rb") as photo:
    answer = requests.post(
        "${address}/v1.0/cutout",
        headers={"X-Api-Key": os.environ["CUTOUT_KEY"]},
        files={"image_file": photo},
        data={"size": "auto"},
    )
if not answer.ok:
    raise SystemExit(answer.json()["errors"][0]["title"])
with open("cutout.png", "wb") as out:
    out.write(answer.content)`;

export const samples: readonly Sample[] = [
  { name: 'curl', id: 'sample-curl', text: curl },
  { name: 'JavaScript (Node.js)', id: 'sample-javascript', text: javascript },
  { name: 'Python', id: 'sample-python', text: python },
];
