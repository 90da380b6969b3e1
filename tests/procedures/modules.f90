! Fortran: module procedures, an external one, one inside another.
module heat
  implicit none
  integer, volatile :: seen = 0
contains
  subroutine relax(field, factor)
    real(8), intent(inout) :: field(:)
    real(8), intent(in) :: factor
    seen = seen + 1
    field = field * factor + 1d0
  end subroutine relax
  function total(field) result(s)
    real(8), intent(in) :: field(:)
    real(8) :: s
    seen = seen + 1
    s = sum(field)
  end function total
end module heat

subroutine outside(n, result)
  use heat, only: seen
  integer, intent(in) :: n
  integer, intent(out) :: result
  seen = seen + 1
  result = n * 2
end subroutine outside

program main
  use heat
  implicit none
  real(8) :: field(64)
  integer :: i, doubled
  real(8) :: all
  field = 1d0
  all = 0d0
  do i = 1, 200
    call relax(field, 0.5d0)
    all = all + total(field)
    call outside(i, doubled)
    all = all + doubled
  end do
  print '(a,f14.4,1x,i0)', 'modules', all, seen
end program main
