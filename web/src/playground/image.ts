/** The source image and its preview. */
export type SourceImage =
  | { readonly kind: 'file'; readonly file: File; readonly preview: string }
  | { readonly kind: 'url'; readonly url: string };

/** `preview` is an object URL, which the component that shows the image revokes. */
export const fileImage = (file: File): SourceImage => ({
  kind: 'file',
  file,
  preview: URL.createObjectURL(file),
});

/** The images among dropped or pasted files. */
export const imagesAmong = (files: FileList | undefined): readonly File[] => {
  // Not every system knows the newer types.
  const isImage = ({ type, name }: File) =>
    type.startsWith('image/') || /\.(?:avif|hei[cf]|tiff?)$/i.test(name);
  return [...(files ?? [])].filter(isImage);
};
