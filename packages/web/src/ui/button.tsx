import type { ComponentProps } from 'react'
import { cn } from '../lib/cn.ts'

const VARIANTS = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-strong shadow-1',
  secondary: 'border border-line-strong bg-raised text-ink hover:bg-hover shadow-1',
  ghost: 'text-muted hover:bg-hover hover:text-ink',
  danger: 'border border-failed-line bg-raised text-failed hover:bg-failed-wash',
} as const
const SIZES = {
  sm: 'h-7 px-2.5 text-xs rounded-md gap-1.5 pointer-coarse:h-11 pointer-coarse:min-w-11',
  md: 'h-9 px-3.5 text-sm rounded-lg gap-2 pointer-coarse:h-11 pointer-coarse:min-w-11',
} as const

export type ButtonVariant = keyof typeof VARIANTS

export function Button({
  variant = 'secondary',
  size = 'md',
  className,
  ...rest
}: ComponentProps<'button'> & { variant?: ButtonVariant; size?: keyof typeof SIZES }) {
  return (
    <button
      type="button"
      {...rest}
      className={cn(
        'inline-flex shrink-0 items-center justify-center font-medium whitespace-nowrap select-none disabled:opacity-50 disabled:pointer-events-none',
        'transition-colors duration-100',
        VARIANTS[variant],
        SIZES[size],
        className,
      )}
    />
  )
}

export const ICON_BUTTON =
  'inline-flex size-8 shrink-0 items-center justify-center rounded-lg text-muted pointer-coarse:size-11 transition-colors duration-100 hover:bg-hover hover:text-ink disabled:opacity-50 [&_svg]:size-4'

/** A square button with an icon; `label` is its accessible name and its tooltip. */
export function IconButton({ label, className, ...rest }: ComponentProps<'button'> & { label: string }) {
  return (
    <button type="button" aria-label={label} title={label} {...rest} className={cn(ICON_BUTTON, className)} />
  )
}
