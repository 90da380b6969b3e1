// The stubs' common parts: from a patched entry into lbf_procedures_enter, and from a replaced return address into
// lbf_procedures_leave. Every general register that a C function may change is kept; the C parts use no others.
//
// An exception, a backtrace or a debugger that comes by lbf_procedures_return needs the true return address. Its
// unwind information finds it: a DWARF expression walks the threads' active calls for the one whose slot is just below
// the frame (ThreadTimes, ActiveCall in call_times.h: offsets 0, 8, 16 and 0, 8, size 32). So every unwinder
// works, without wrapping any of its functions. The personality routine sees exceptions pass and ends the call.
        .text

        .macro save_registers
        push    %rax
        .cfi_adjust_cfa_offset 8
        push    %rcx
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %r8
        .cfi_adjust_cfa_offset 8
        push    %r9
        .cfi_adjust_cfa_offset 8
        push    %r10
        .cfi_adjust_cfa_offset 8
        push    %r11
        .cfi_adjust_cfa_offset 8
        .endm

        .macro restore_registers
        pop     %r11
        .cfi_adjust_cfa_offset -8
        pop     %r10
        .cfi_adjust_cfa_offset -8
        pop     %r9
        .cfi_adjust_cfa_offset -8
        pop     %r8
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        pop     %rax
        .cfi_adjust_cfa_offset -8
        .endm

// Stack: 0 back into the stub, 8 procedure and flags, 16 the procedure's return address (the slot).
        .globl  lbf_procedures_entry
        .hidden lbf_procedures_entry
        .type   lbf_procedures_entry, @function
        .balign 16
lbf_procedures_entry:
        .cfi_startproc
        .cfi_def_cfa rsp, 24            // the stub has no frame: the procedure's caller comes next
        .cfi_offset rip, -8
        save_registers
        movl    80(%rsp), %edi
        leaq    88(%rsp), %rsi
        .hidden lbf_procedures_enter
        call    lbf_procedures_enter
        restore_registers
        ret     $8
        .cfi_endproc
        .size   lbf_procedures_entry, . - lbf_procedures_entry

// A jump instead of a return: the processor's return stack has lost this call's entry already, the procedure's own
// return took it.
        .balign 16
        .globl  lbf_procedures_return
        .hidden lbf_procedures_return
        .type   lbf_procedures_return, @function
        .hidden lbf_procedures_threads
        .hidden lbf_procedures_personality
// Constants that the expression reads, found from the return address.
.Lthreads_distance:
        .long   lbf_procedures_threads - .
        .long   0
.Lend_of_stack:
        .quad   0
        .cfi_startproc
        .cfi_personality 0x1b, lbf_procedures_personality
        // Unwinders tell frames apart by their CFA, and libgcc ends the program where an exception's handler seems to be in a
        // frame that is none of its own. This frame takes no room, so its CFA would be its caller's: it lies 4 bytes off, where
        // no other frame's can, and the stack pointer has a rule of its own.
        .cfi_def_cfa rsp, 4
        .cfi_escape 0x16, 0x07, 2, 0x34, 0x1c          // DW_CFA_val_expression rsp: lit4 minus
        // DW_CFA_expression, register 16 (return address), length, then the expression; the CFA is on its stack.
        .cfi_escape 0x10, 0x10, 61
        .cfi_escape 0x12                               //    dup: libgcc's pick cannot reach the lowest element
        .cfi_escape 0x3c, 0x1c                         //  0 lit12 minus           [slot]
        .cfi_escape 0x80, 0x68                         //  2 breg16 -24            [slot, &distance]
        .cfi_escape 0x12, 0x94, 0x04                   //  4 dup, deref_size 4
        .cfi_escape 0x22, 0x06                         //  7 plus deref            [slot, thread]
        .cfi_escape 0x12, 0x28, 0x06, 0x00             //  9 dup, bra +6 -> 18
        .cfi_escape 0x13, 0x80, 0x70                   // 13 drop, breg16 -16      [slot, &end_of_stack]
        .cfi_escape 0x2f, 0x29, 0x00                   // 16 skip -> end
        .cfi_escape 0x12, 0x23, 0x10, 0x06             // 19 dup plus 16 deref     [slot, thread, top]
        .cfi_escape 0x12, 0x15, 0x02                   // 23 dup pick 2            [slot, thread, e, e, thread]
        .cfi_escape 0x23, 0x08, 0x06                   // 26 plus 8 deref          [.., e, e, base]
        .cfi_escape 0x29, 0x28, 0x13, 0x00             // 29 eq bra -> 52
        .cfi_escape 0x08, 0x20, 0x1c                   // 33 const 32 minus        [slot, thread, e]
        .cfi_escape 0x12, 0x06, 0x15, 0x03             // 36 dup deref pick 3      [slot, thread, e, e.slot, slot]
        .cfi_escape 0x2e, 0x28, 0xeb, 0xff             // 40 ne bra -> 23
        .cfi_escape 0x23, 0x08                         // 44 plus 8                [slot, thread, &e.return_address]
        .cfi_escape 0x2f, 0x0b, 0x00                   // 46 skip -> 60 (end)
        .cfi_escape 0x96, 0x96, 0x96                   // 49 nop
        .cfi_escape 0x13, 0x06                         // 52 drop deref            [slot, thread->next]
        .cfi_escape 0x2f, 0xd0, 0xff                   // 54 skip -> 9
        .cfi_escape 0x96, 0x96, 0x96                   // 57 nop
        nop                             // unwinders look one byte before a return address
        .balign 8, 0x90
lbf_procedures_return:
        leaq    -8(%rsp), %rsp
        .cfi_adjust_cfa_offset 8
        .cfi_undefined rip              // from in here the expression would read elsewhere
        save_registers
        leaq    72(%rsp), %rdi
        .hidden lbf_procedures_leave
        call    lbf_procedures_leave
        movq    %rax, 72(%rsp)
        restore_registers
        leaq    8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        jmp     *-8(%rsp)               // no signal writes there: the red zone
        .cfi_endproc
        .size   lbf_procedures_return, . - lbf_procedures_return

        .globl  lbf_procedures_nothing
        .hidden lbf_procedures_nothing
        .globl  lbf_procedures_nothing_end
        .hidden lbf_procedures_nothing_end
        .type   lbf_procedures_nothing, @function
        .balign 16
lbf_procedures_nothing:
        .cfi_startproc
        nopl    0(%rax, %rax, 1)
        ret
        .cfi_endproc
lbf_procedures_nothing_end:
        .size   lbf_procedures_nothing, . - lbf_procedures_nothing
        .balign 16

        .section .note.GNU-stack,"",@progbits
