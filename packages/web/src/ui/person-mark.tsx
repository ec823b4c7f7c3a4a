import { cn } from '../lib/cn.ts'

/**
 * Initials in a calm colour, the same for a person everywhere. Not read aloud: a name is beside it.
 */
export function PersonMark(props: { id: string; name: string; className?: string }) {
  const hue = hueOf(props.id)
  return (
    <span
      aria-hidden
      className={cn(
        'inline-flex size-6 shrink-0 items-center justify-center rounded-full text-[0.625rem] leading-none font-semibold select-none',
        props.className,
      )}
      style={{
        backgroundColor: `light-dark(oklch(0.9 0.05 ${hue}), oklch(0.36 0.05 ${hue}))`,
        color: `light-dark(oklch(0.38 0.085 ${hue}), oklch(0.9 0.05 ${hue}))`,
      }}
    >
      {initialsOf(props.name)}
    </span>
  )
}

/** Initials of the first and the last word. */
function initialsOf(name: string): string {
  const words = name.trim().split(/\s+/)
  const letters = [words.at(0), words.length > 1 ? words.at(-1) : undefined].map(
    (word = '') => /^./u.exec(word)?.[0],
  )
  return letters.join('').toUpperCase() || '?'
}

/** Twelve hues, far enough apart to distinguish people. */
function hueOf(id: string): number {
  let hash = 0
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 9973
  return (hash % 12) * 30 + 15
}
