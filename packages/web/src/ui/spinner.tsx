import { LoaderCircle } from 'lucide-react'
import { cn } from '../lib/cn.ts'

export function Spinner(props: { className?: string }) {
  return <LoaderCircle className={cn('size-4 animate-spin', props.className)} aria-hidden />
}
