/** The part that vite.config.ts uses; its published types lack `keepFeatures` and `noHinting`. */
declare module 'subset-font' {
  export default function subsetFont(
    font: Buffer,
    characters: string,
    options: {
      targetFormat: 'woff2'
      /** By axis, the range of values that stays. */
      variationAxes: Record<string, { min: number; max: number }>
      /** Tags of the OpenType features that stay. */
      keepFeatures: readonly string[]
      noHinting: boolean
    },
  ): Promise<Buffer>
}
