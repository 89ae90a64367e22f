// The detector's 80 classes (COCO), in its order, and the subject type of each. Ambiguous classes have none: objects that
// appear in images of every type, and food, which is a product on white and `other` on a plate.
const TYPES = {
  person: ['person'],
  animal: ['bird', 'cat', 'dog', 'horse', 'sheep', 'cow', 'elephant', 'bear', 'zebra', 'giraffe'],
  car: ['car'],
  transportation: ['bicycle', 'motorcycle', 'airplane', 'bus', 'train', 'truck', 'boat'],
  product: [
    ...['backpack', 'umbrella', 'handbag', 'tie', 'suitcase', 'frisbee', 'skis', 'snowboard', 'sports ball'],
    ...['kite', 'baseball bat', 'baseball glove', 'skateboard', 'surfboard', 'tennis racket', 'bottle'],
    ...['wine glass', 'cup', 'fork', 'knife', 'spoon', 'bowl', 'chair', 'couch', 'toilet', 'tv', 'laptop'],
    ...['mouse', 'remote', 'keyboard', 'cell phone', 'microwave', 'oven', 'toaster', 'refrigerator', 'book'],
    ...['clock', 'vase', 'scissors', 'teddy bear', 'hair drier', 'toothbrush'],
  ],
  other: ['traffic light', 'fire hydrant', 'stop sign', 'parking meter', 'potted plant'],
};

const KINDS = [
  ...['person', 'bicycle', 'car', 'motorcycle', 'airplane', 'bus', 'train', 'truck', 'boat', 'traffic light'],
  ...['fire hydrant', 'stop sign', 'parking meter', 'bench', 'bird', 'cat', 'dog', 'horse', 'sheep', 'cow'],
  ...[
    'elephant',
    'bear',
    'zebra',
    'giraffe',
    'backpack',
    'umbrella',
    'handbag',
    'tie',
    'suitcase',
    'frisbee',
  ],
  ...[
    'skis',
    'snowboard',
    'sports ball',
    'kite',
    'baseball bat',
    'baseball glove',
    'skateboard',
    'surfboard',
  ],
  ...['tennis racket', 'bottle', 'wine glass', 'cup', 'fork', 'knife', 'spoon', 'bowl', 'banana', 'apple'],
  ...['sandwich', 'orange', 'broccoli', 'carrot', 'hot dog', 'pizza', 'donut', 'cake', 'chair', 'couch'],
  ...['potted plant', 'bed', 'dining table', 'toilet', 'tv', 'laptop', 'mouse', 'remote', 'keyboard'],
  ...[
    'cell phone',
    'microwave',
    'oven',
    'toaster',
    'sink',
    'refrigerator',
    'book',
    'clock',
    'vase',
    'scissors',
  ],
  ...['teddy bear', 'hair drier', 'toothbrush'],
];

/** The subject type of each class; undefined for ambiguous ones. */
export const typeOfKind = KINDS.map(
  (kind) => Object.entries(TYPES).find(([, kinds]) => kinds.includes(kind))?.[0],
);
