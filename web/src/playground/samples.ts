/** Images for visitors without a photo, drawn here so that none has to be shipped or licensed. */

type Draw = (g: CanvasRenderingContext2D, random: () => number) => void;

const width = 1200;
const height = 900;

/** mulberry32: the same images on every machine. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A wall and a table, out of focus. */
function room(g: CanvasRenderingContext2D, random: () => number, wall: string, table: string): void {
  g.fillStyle = wall;
  g.fillRect(0, 0, width, height);
  g.filter = 'blur(28px)';
  for (let i = 0; i < 22; i++) {
    g.fillStyle = `hsl(${random() * 360} 35% ${55 + random() * 30}% / 0.35)`;
    g.beginPath();
    g.arc(random() * width, random() * height * 0.6, 30 + random() * 90, 0, 7);
    g.fill();
  }
  g.fillStyle = table;
  g.fillRect(-50, height * 0.74, width + 100, height);
  g.filter = 'none';
}

function shadow(g: CanvasRenderingContext2D, x: number, y: number, w: number): void {
  g.save();
  g.filter = 'blur(18px)';
  g.fillStyle = 'rgb(0 0 0 / 0.4)';
  g.beginPath();
  g.ellipse(x, y, w, w * 0.13, 0, 0, 7);
  g.fill();
  g.restore();
}

const creature: Draw = (g, random) => {
  room(g, random, '#8fb4c4', '#7d6a58');
  shadow(g, 600, 800, 280);
  const fur = (x: number, y: number, rx: number, ry: number, hue: number, strands: number) => {
    for (let i = 0; i < strands; i++) {
      const turn = random() * Math.PI * 2;
      const out = Math.sqrt(random());
      const px = x + Math.cos(turn) * rx * out;
      const py = y + Math.sin(turn) * ry * out;
      const length = 26 + random() * 46 * out;
      const lean = turn + (random() - 0.5) * 0.9;
      g.strokeStyle = `hsl(${hue + random() * 14} ${40 + random() * 20}% ${30 + random() * 38 - out * 4}%)`;
      g.lineWidth = 1 + random() * 1.8;
      g.beginPath();
      g.moveTo(px, py);
      g.quadraticCurveTo(
        px + Math.cos(lean) * length * 0.6,
        py + Math.sin(lean) * length * 0.6,
        px + Math.cos(lean + 0.3) * length,
        py + Math.sin(lean + 0.3) * length + 8,
      );
      g.stroke();
    }
  };
  g.fillStyle = '#8a5a2c';
  for (const [x, y, rx, ry] of [
    [600, 600, 215, 195],
    [600, 345, 160, 140],
  ] as const) {
    g.beginPath();
    g.ellipse(x, y, rx, ry, 0, 0, 7);
    g.fill();
  }
  for (const side of [-1, 1]) {
    g.beginPath();
    g.moveTo(600 + side * 60, 250);
    g.lineTo(600 + side * 130, 130);
    g.lineTo(600 + side * 150, 300);
    g.fill();
    fur(600 + side * 118, 235, 34, 62, 24, 500);
  }
  fur(600, 600, 225, 205, 26, 9000);
  fur(600, 345, 168, 148, 28, 6000);
  for (const side of [-1, 1]) {
    g.fillStyle = '#1b1410';
    g.beginPath();
    g.ellipse(600 + side * 62, 330, 24, 27, 0, 0, 7);
    g.fill();
    g.fillStyle = '#fff';
    g.beginPath();
    g.arc(600 + side * 62 + 8, 321, 7, 0, 7);
    g.fill();
  }
  g.fillStyle = '#2a1a14';
  g.beginPath();
  g.ellipse(600, 392, 22, 15, 0, 0, 7);
  g.fill();
};

const plant: Draw = (g, random) => {
  room(g, random, '#cfdbe4', '#8d97a5');
  shadow(g, 600, 815, 190);
  const leaf = (x: number, y: number, turn: number, length: number) => {
    g.save();
    g.translate(x, y);
    g.rotate(turn);
    const light = 24 + random() * 22;
    const shade = g.createLinearGradient(0, -length * 0.2, 0, length * 0.2);
    shade.addColorStop(0, `hsl(${105 + random() * 25} 45% ${light + 14}%)`);
    shade.addColorStop(1, `hsl(${110 + random() * 25} 50% ${light}%)`);
    g.fillStyle = shade;
    g.beginPath();
    g.moveTo(0, 0);
    g.bezierCurveTo(length * 0.3, -length * 0.26, length * 0.8, -length * 0.16, length, 0);
    g.bezierCurveTo(length * 0.8, length * 0.16, length * 0.3, length * 0.26, 0, 0);
    g.fill();
    g.strokeStyle = `hsl(100 40% ${light + 22}% / 0.8)`;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(0, 0);
    g.lineTo(length * 0.95, 0);
    g.stroke();
    g.restore();
  };
  for (let stem = 0; stem < 15; stem++) {
    const lean = -Math.PI / 2 + (stem - 7) * 0.16 + (random() - 0.5) * 0.1;
    const reach = 300 + random() * 150;
    const tipX = 600 + Math.cos(lean) * reach;
    const tipY = 640 + Math.sin(lean) * reach;
    g.strokeStyle = '#3e6b34';
    g.lineWidth = 6;
    g.beginPath();
    g.moveTo(600 + (stem - 7) * 8, 650);
    g.quadraticCurveTo(600 + Math.cos(lean) * reach * 0.4, 560, tipX, tipY);
    g.stroke();
    for (let i = 0; i < 9; i++) {
      const at = 0.35 + (i / 9) * 0.65;
      leaf(
        600 + (tipX - 600) * at,
        640 + (tipY - 640) * at,
        lean + (i % 2 ? 0.9 : -0.9) + (random() - 0.5) * 0.5,
        55 + random() * 55,
      );
    }
    leaf(tipX, tipY, lean, 85);
  }
  const pot = g.createLinearGradient(470, 0, 740, 0);
  pot.addColorStop(0, '#d9744a');
  pot.addColorStop(0.35, '#c65f38');
  pot.addColorStop(1, '#7f3519');
  g.fillStyle = pot;
  g.beginPath();
  g.moveTo(480, 640);
  g.lineTo(720, 640);
  g.lineTo(690, 825);
  g.lineTo(510, 825);
  g.fill();
  g.fillRect(465, 615, 270, 45);
};

const mug: Draw = (g, random) => {
  room(g, random, '#45506b', '#c9b79c');
  shadow(g, 620, 800, 270);
  const glaze = g.createLinearGradient(420, 0, 780, 0);
  glaze.addColorStop(0, '#fdf7e8');
  glaze.addColorStop(0.3, '#f4c95d');
  glaze.addColorStop(1, '#a86a12');
  g.strokeStyle = '#c48a26';
  g.lineWidth = 42;
  g.beginPath();
  g.ellipse(785, 560, 95, 120, 0, -1.4, 1.6);
  g.stroke();
  g.fillStyle = glaze;
  g.beginPath();
  g.moveTo(420, 340);
  g.lineTo(780, 340);
  g.quadraticCurveTo(775, 700, 740, 800);
  g.quadraticCurveTo(600, 840, 460, 800);
  g.quadraticCurveTo(425, 700, 420, 340);
  g.fill();
  g.fillStyle = '#7d4c0c';
  g.beginPath();
  g.ellipse(600, 340, 180, 46, 0, 0, 7);
  g.fill();
  g.fillStyle = '#2d1709';
  g.beginPath();
  g.ellipse(600, 350, 160, 36, 0, 0, 7);
  g.fill();
  g.fillStyle = '#fffdf5';
  for (let i = 0; i < 9; i++) {
    const x = 450 + (i % 3) * 110 + (Math.floor(i / 3) % 2) * 50;
    g.beginPath();
    g.arc(x, 470 + Math.floor(i / 3) * 110, 24, 0, 7);
    g.fill();
  }
};

export const samples = [
  { name: 'Fur', file: 'creature.jpg', draw: creature },
  { name: 'Leaves', file: 'plant.jpg', draw: plant },
  { name: 'Product', file: 'mug.jpg', draw: mug },
] as const;

/** Draws a sample as a JPEG, 1200 × 900. */
export async function drawSample({ file, draw }: (typeof samples)[number]): Promise<File> {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const g = canvas.getContext('2d');
  if (!g) throw new Error('This browser cannot draw images.');
  draw(g, seeded(7));
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.92));
  if (!blob) throw new Error('This browser cannot write images.');
  return new File([blob], file, { type: 'image/jpeg' });
}
