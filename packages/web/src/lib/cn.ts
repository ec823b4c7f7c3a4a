import { type ClassValue, clsx } from 'clsx'
import { extendTailwindMerge } from 'tailwind-merge'

// Our own size names; without them `text-2xs` would be taken for a colour and dropped beside one.
const merge = extendTailwindMerge({
  extend: { classGroups: { 'font-size': [{ text: ['2xs', 'xs', 'sm', 'base', 'lg', 'xl', '2xl'] }] } },
})

/** Class names, later ones winning over earlier ones of the same Tailwind group. */
export function cn(...classes: ClassValue[]): string {
  return merge(clsx(classes))
}
