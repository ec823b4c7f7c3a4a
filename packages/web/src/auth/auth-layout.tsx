import type { ReactNode } from 'react'
import { LogoMark } from '../ui/logo.tsx'

/** The frame of the pages before one is signed in. */
export function AuthLayout(props: { title: string; text: ReactNode; children: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto bg-panel">
      <main className="mx-auto flex min-h-full w-full max-w-[26rem] flex-col justify-center px-5 py-12">
        <div className="flex items-center gap-2.5">
          <LogoMark className="size-8" />
          <span className="text-lg font-semibold tracking-tight">Sandlot</span>
        </div>
        <div className="mt-6 rounded-2xl border border-line bg-raised p-6 shadow-2 sm:p-7">
          <h1 className="text-xl font-semibold tracking-tight">{props.title}</h1>
          <div className="mt-1.5 text-sm text-muted">{props.text}</div>
          <div className="mt-6">{props.children}</div>
        </div>
      </main>
    </div>
  )
}
